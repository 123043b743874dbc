--
-- PostgreSQL database dump
--

\restrict 4H1GjcBfAMdFiCujFc8UhV2dxysXfxMfCSRG9gqRYXya9SsAnfPkbiu24R0AlBr

-- Dumped from database version 15.18
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: auth; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA auth;


--
-- Name: storage; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA storage;


--
-- Name: mood; Type: TYPE; Schema: public; Owner: -
--

CREATE TYPE public.mood AS ENUM (
    'calm',
    'it''s fine',
    'angry'
);


--
-- Name: jwt(); Type: FUNCTION; Schema: auth; Owner: -
--

CREATE FUNCTION auth.jwt() RETURNS jsonb
    LANGUAGE sql STABLE
    AS $$
  SELECT nullif(current_setting('request.jwt.claims', true), '')::jsonb;
$$;


--
-- Name: role(); Type: FUNCTION; Schema: auth; Owner: -
--

CREATE FUNCTION auth.role() RETURNS text
    LANGUAGE sql STABLE
    AS $$
  SELECT nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role';
$$;


--
-- Name: uid(); Type: FUNCTION; Schema: auth; Owner: -
--

CREATE FUNCTION auth.uid() RETURNS uuid
    LANGUAGE sql STABLE
    AS $$
  SELECT nullif(nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub', '')::uuid;
$$;


--
-- Name: is_admin(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.is_admin() RETURNS boolean
    LANGUAGE sql STABLE
    AS $$ SELECT auth.jwt() -> 'app_metadata' ->> 'admin' = 'yes' $$;


--
-- Name: foldername(text); Type: FUNCTION; Schema: storage; Owner: -
--

CREATE FUNCTION storage.foldername(name text) RETURNS text[]
    LANGUAGE sql IMMUTABLE
    AS $$
  SELECT (string_to_array(name, '/'))[1:array_length(string_to_array(name, '/'), 1) - 1];
$$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: identities; Type: TABLE; Schema: auth; Owner: -
--

CREATE TABLE auth.identities (
    provider_id text NOT NULL,
    user_id uuid NOT NULL,
    identity_data jsonb NOT NULL,
    provider text NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL
);


--
-- Name: users; Type: TABLE; Schema: auth; Owner: -
--

CREATE TABLE auth.users (
    instance_id uuid,
    id uuid NOT NULL,
    aud character varying(255),
    role character varying(255),
    email character varying(255),
    encrypted_password character varying(255),
    email_confirmed_at timestamp with time zone,
    raw_app_meta_data jsonb,
    raw_user_meta_data jsonb,
    created_at timestamp with time zone,
    banned_until timestamp with time zone,
    confirmed_at timestamp with time zone GENERATED ALWAYS AS (LEAST(email_confirmed_at, email_confirmed_at)) STORED,
    deleted_at timestamp with time zone,
    is_anonymous boolean DEFAULT false NOT NULL
);


--
-- Name: announcements; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.announcements (
    id integer NOT NULL,
    body text,
    published boolean,
    audience text,
    hides_from uuid
);


--
-- Name: log; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.log (
    at timestamp without time zone,
    line text
);


--
-- Name: members; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.members (
    team_id bigint NOT NULL,
    user_id uuid NOT NULL,
    role text DEFAULT 'member'::text NOT NULL
);


--
-- Name: notes; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.notes (
    note_id uuid NOT NULL,
    task_id uuid,
    body text
);


--
-- Name: open_table; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.open_table (
    id integer NOT NULL,
    n integer
);


--
-- Name: profiles; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.profiles (
    id uuid NOT NULL,
    username text,
    email text,
    is_public boolean DEFAULT false NOT NULL,
    secret_note text
);


--
-- Name: slots; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.slots (
    id integer NOT NULL,
    low integer,
    high integer,
    code text NOT NULL,
    confirmed_code text
);


--
-- Name: tasks; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.tasks (
    task_id uuid DEFAULT gen_random_uuid() NOT NULL,
    team_id bigint NOT NULL,
    author_id uuid,
    title text NOT NULL,
    mood public.mood DEFAULT 'calm'::public.mood,
    level integer,
    price numeric(12,2),
    big bigint,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    watcher_ids uuid[],
    facts jsonb DEFAULT '{}'::jsonb,
    due date,
    due_at timestamp with time zone,
    locked boolean,
    title_length integer GENERATED ALWAYS AS (length(title)) STORED,
    CONSTRAINT tasks_level_check CHECK ((level < 100))
);


--
-- Name: task_titles; Type: VIEW; Schema: public; Owner: -
--

CREATE VIEW public.task_titles AS
 SELECT tasks.task_id,
    tasks.title
   FROM public.tasks;


--
-- Name: teams; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.teams (
    id bigint NOT NULL,
    name text DEFAULT 'A "team"'::text NOT NULL,
    owner_id uuid DEFAULT auth.uid(),
    created_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: teams_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.teams ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.teams_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: buckets; Type: TABLE; Schema: storage; Owner: -
--

CREATE TABLE storage.buckets (
    id text NOT NULL,
    name text NOT NULL,
    public boolean DEFAULT false,
    file_size_limit bigint
);


--
-- Name: objects; Type: TABLE; Schema: storage; Owner: -
--

CREATE TABLE storage.objects (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    bucket_id text,
    name text,
    owner_id text,
    created_at timestamp with time zone DEFAULT now(),
    metadata jsonb
);


--
-- Data for Name: identities; Type: TABLE DATA; Schema: auth; Owner: -
--

COPY auth.identities (provider_id, user_id, identity_data, provider, id) FROM stdin;
00000000-0000-4000-8000-00000000000a	00000000-0000-4000-8000-00000000000a	{"sub": "x", "email": "owner@example.com"}	email	c2e6b136-a83f-4e2f-b9bc-f7821d343cc7
google-17	00000000-0000-4000-8000-00000000000a	{"sub": "google-17"}	google	c09c3cc7-5f83-47e7-b82a-b256dc45519e
\.


--
-- Data for Name: users; Type: TABLE DATA; Schema: auth; Owner: -
--

COPY auth.users (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at, raw_app_meta_data, raw_user_meta_data, created_at, banned_until, deleted_at, is_anonymous) FROM stdin;
\N	00000000-0000-4000-8000-00000000000a	authenticated	authenticated	owner@example.com	$2a$04$wOow2duDpX6O7kT08nfwCuCvEnMhziNhDJE4mbmGYp.rJF2LPfRoS	2024-01-02 03:04:05.678901+00	{"provider": "email"}	{"full_name": "The Owner"}	2024-01-01 00:00:00+00	\N	\N	f
\N	00000000-0000-4000-8000-00000000000b	authenticated	authenticated	member@example.com	$2a$04$wOow2duDpX6O7kT08nfwCuCvEnMhziNhDJE4mbmGYp.rJF2LPfRoS	2024-01-02 03:04:05+00	{}	{}	2024-01-01 00:00:01+00	\N	\N	f
\N	00000000-0000-4000-8000-00000000000c	authenticated	authenticated	stranger@example.com	$2a$04$wOow2duDpX6O7kT08nfwCuCvEnMhziNhDJE4mbmGYp.rJF2LPfRoS	2024-01-02 03:04:05+00	{}	{}	2024-01-01 00:00:02+00	\N	\N	f
\N	00000000-0000-4000-8000-00000000000d	authenticated	authenticated	banned@example.com	$2a$04$wOow2duDpX6O7kT08nfwCuCvEnMhziNhDJE4mbmGYp.rJF2LPfRoS	2024-01-02 03:04:05+00	{}	{}	2024-01-01 00:00:03+00	2999-01-01 00:00:00+00	\N	f
\N	00000000-0000-4000-8000-00000000000e	authenticated	authenticated	\N	\N	\N	{}	{}	2024-01-01 00:00:04+00	\N	\N	f
\.


--
-- Data for Name: announcements; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.announcements (id, body, published, audience, hides_from) FROM stdin;
1	for all	t	all	\N
2	for staff	t	staff	\N
3	draft	f	all	\N
4	no audience	t	\N	\N
5	for users	\N	users	\N
6	not for the member	t	all	00000000-0000-4000-8000-00000000000b
\.


--
-- Data for Name: log; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.log (at, line) FROM stdin;
2024-05-06 06:00:00	one
\N	two
\.


--
-- Data for Name: members; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.members (team_id, user_id, role) FROM stdin;
1	00000000-0000-4000-8000-00000000000a	owner
1	00000000-0000-4000-8000-00000000000b	member
2	00000000-0000-4000-8000-00000000000c	owner
\.


--
-- Data for Name: notes; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.notes (note_id, task_id, body) FROM stdin;
00000000-0000-4000-8000-000000000201	00000000-0000-4000-8000-000000000101	on the owner's
00000000-0000-4000-8000-000000000202	00000000-0000-4000-8000-000000000104	on nobody's
00000000-0000-4000-8000-000000000203	\N	on none
\.


--
-- Data for Name: open_table; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.open_table (id, n) FROM stdin;
1	2
\.


--
-- Data for Name: profiles; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.profiles (id, username, email, is_public, secret_note) FROM stdin;
00000000-0000-4000-8000-00000000000a	owner	owner@example.com	f	tab\there
00000000-0000-4000-8000-00000000000b	member	member@example.com	t	b's
00000000-0000-4000-8000-00000000000d	\N	\N	f	\N
\.


--
-- Data for Name: slots; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.slots (id, low, high, code, confirmed_code) FROM stdin;
1	1	2	a	b
2	2	1	a	a
3	\N	2	a	\N
4	1	\N	a	a
5	2	2	a	b
6	1	5	a	\N
\.


--
-- Data for Name: tasks; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.tasks (task_id, team_id, author_id, title, mood, level, price, big, tags, watcher_ids, facts, due, due_at, locked) FROM stdin;
00000000-0000-4000-8000-000000000101	1	00000000-0000-4000-8000-00000000000a	of the owner	calm	3	12.50	9007199254740993	{a,"b c","d\\"e",NULL}	{00000000-0000-4000-8000-00000000000c}	{"a": [1, null, {"b": "c"}]}	2024-02-29	2024-05-06 04:00:00+00	f
00000000-0000-4000-8000-000000000102	1	00000000-0000-4000-8000-00000000000b	of the member	it's fine	\N	\N	1	{}	\N	"text"	\N	\N	\N
00000000-0000-4000-8000-000000000103	2	00000000-0000-4000-8000-00000000000c	locked	calm	-5	0.10	\N	{}	{}	\N	\N	\N	t
00000000-0000-4000-8000-000000000104	3	\N	of nobody	\N	7	\N	\N	{}	\N	[]	\N	\N	f
\.


--
-- Data for Name: teams; Type: TABLE DATA; Schema: public; Owner: -
--

COPY public.teams (id, name, owner_id, created_at) FROM stdin;
1	Lamps	00000000-0000-4000-8000-00000000000a	2024-05-06 04:00:00.123456+00
2	Line\nbreak \\ ü	00000000-0000-4000-8000-00000000000c	2024-05-06 06:00:00+00
3	Nobody's	\N	2024-05-06 06:00:00+00
4	Lost	00000000-0000-4000-8000-00000000000e	2024-05-06 06:00:00+00
\.


--
-- Data for Name: buckets; Type: TABLE DATA; Schema: storage; Owner: -
--

COPY storage.buckets (id, name, public, file_size_limit) FROM stdin;
avatars	avatars	t	1000
papers	papers	f	\N
my bucket	my bucket	f	\N
\.


--
-- Data for Name: objects; Type: TABLE DATA; Schema: storage; Owner: -
--

COPY storage.objects (id, bucket_id, name, owner_id, created_at, metadata) FROM stdin;
023e7339-e0af-436f-a7bf-46e719a26dd7	avatars	00000000-0000-4000-8000-00000000000a/me.png	00000000-0000-4000-8000-00000000000a	2024-03-04 05:06:07+00	{"mimetype": "image/png"}
e5b24021-15e4-443d-b76d-95e9df294d4d	papers	plan.txt	00000000-0000-4000-8000-00000000000b	2024-03-04 05:06:08+00	{"mimetype": "text/plain"}
eb27d29b-6515-4108-8f47-d870d378e308	papers	gone.txt	\N	2024-03-04 05:06:09+00	\N
\.


--
-- Name: teams_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.teams_id_seq', 1, false);


--
-- Name: identities identities_pkey; Type: CONSTRAINT; Schema: auth; Owner: -
--

ALTER TABLE ONLY auth.identities
    ADD CONSTRAINT identities_pkey PRIMARY KEY (id);


--
-- Name: identities identities_provider_id_provider_key; Type: CONSTRAINT; Schema: auth; Owner: -
--

ALTER TABLE ONLY auth.identities
    ADD CONSTRAINT identities_provider_id_provider_key UNIQUE (provider_id, provider);


--
-- Name: users users_pkey; Type: CONSTRAINT; Schema: auth; Owner: -
--

ALTER TABLE ONLY auth.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);


--
-- Name: announcements announcements_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.announcements
    ADD CONSTRAINT announcements_pkey PRIMARY KEY (id);


--
-- Name: members members_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (team_id, user_id);


--
-- Name: notes notes_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.notes
    ADD CONSTRAINT notes_pkey PRIMARY KEY (note_id);


--
-- Name: open_table open_table_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.open_table
    ADD CONSTRAINT open_table_pkey PRIMARY KEY (id);


--
-- Name: profiles profiles_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.profiles
    ADD CONSTRAINT profiles_pkey PRIMARY KEY (id);


--
-- Name: profiles profiles_username_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.profiles
    ADD CONSTRAINT profiles_username_key UNIQUE (username);


--
-- Name: slots slots_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.slots
    ADD CONSTRAINT slots_pkey PRIMARY KEY (id);


--
-- Name: tasks tasks_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (task_id);


--
-- Name: teams teams_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.teams
    ADD CONSTRAINT teams_pkey PRIMARY KEY (id);


--
-- Name: buckets buckets_pkey; Type: CONSTRAINT; Schema: storage; Owner: -
--

ALTER TABLE ONLY storage.buckets
    ADD CONSTRAINT buckets_pkey PRIMARY KEY (id);


--
-- Name: objects objects_pkey; Type: CONSTRAINT; Schema: storage; Owner: -
--

ALTER TABLE ONLY storage.objects
    ADD CONSTRAINT objects_pkey PRIMARY KEY (id);


--
-- Name: tasks_team; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX tasks_team ON public.tasks USING btree (team_id, title);


--
-- Name: tasks_title; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX tasks_title ON public.tasks USING btree (lower(title));


--
-- Name: identities identities_user_id_fkey; Type: FK CONSTRAINT; Schema: auth; Owner: -
--

ALTER TABLE ONLY auth.identities
    ADD CONSTRAINT identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;


--
-- Name: members members_team_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_team_id_fkey FOREIGN KEY (team_id) REFERENCES public.teams(id) ON DELETE CASCADE;


--
-- Name: members members_user_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(id) ON DELETE CASCADE;


--
-- Name: notes notes_task_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.notes
    ADD CONSTRAINT notes_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.tasks(task_id);


--
-- Name: profiles profiles_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.profiles
    ADD CONSTRAINT profiles_id_fkey FOREIGN KEY (id) REFERENCES auth.users(id) ON DELETE CASCADE;


--
-- Name: tasks tasks_author_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_author_id_fkey FOREIGN KEY (author_id) REFERENCES auth.users(id);


--
-- Name: tasks tasks_team_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_team_id_fkey FOREIGN KEY (team_id) REFERENCES public.teams(id) ON DELETE CASCADE;


--
-- Name: teams teams_owner_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.teams
    ADD CONSTRAINT teams_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES auth.users(id) ON DELETE SET NULL;


--
-- Name: objects objects_bucket_id_fkey; Type: FK CONSTRAINT; Schema: storage; Owner: -
--

ALTER TABLE ONLY storage.objects
    ADD CONSTRAINT objects_bucket_id_fkey FOREIGN KEY (bucket_id) REFERENCES storage.buckets(id);


--
-- Name: tasks Admins; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "Admins" ON public.tasks FOR DELETE USING (public.is_admin());


--
-- Name: slots Another code; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "Another code" ON public.slots FOR UPDATE USING ((NOT (code = confirmed_code))) WITH CHECK (true);


--
-- Name: announcements For users; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "For users" ON public.announcements FOR SELECT TO authenticated USING (((NOT ((audience = 'staff'::text) OR (NOT published))) AND ((hides_from <> auth.uid()) OR (hides_from IS NULL))));


--
-- Name: slots In order; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "In order" ON public.slots FOR SELECT USING (((low < high) OR (code = confirmed_code)));


--
-- Name: announcements Insiders; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "Insiders" ON public.announcements FOR SELECT USING (((auth.role() = 'authenticated'::text) AND (audience = 'users'::text)));


--
-- Name: members Members see members; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "Members see members" ON public.members FOR SELECT TO authenticated USING ((user_id = auth.uid()));


--
-- Name: slots New in order; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "New in order" ON public.slots FOR INSERT WITH CHECK ((low <= high));


--
-- Name: profiles New profile; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "New profile" ON public.profiles FOR INSERT TO authenticated WITH CHECK (((id = auth.uid()) AND (email = (auth.jwt() ->> 'email'::text))));


--
-- Name: tasks Not locked; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "Not locked" ON public.tasks AS RESTRICTIVE FOR UPDATE USING (((NOT locked) OR (locked IS NULL)));


--
-- Name: notes Notes of tasks; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "Notes of tasks" ON public.notes USING ((EXISTS ( SELECT 1
   FROM public.tasks
  WHERE (tasks.task_id = notes.task_id))));


--
-- Name: profiles Own profile; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "Own profile" ON public.profiles FOR UPDATE USING ((auth.uid() = id)) WITH CHECK ((auth.uid() = id));


--
-- Name: tasks Own tasks; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "Own tasks" ON public.tasks USING ((author_id = auth.uid())) WITH CHECK (((author_id = auth.uid()) AND (mood = ANY (ARRAY['calm'::public.mood, 'it''s fine'::public.mood]))));


--
-- Name: members Owners add members; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "Owners add members" ON public.members FOR INSERT TO authenticated WITH CHECK ((EXISTS ( SELECT 1
   FROM public.teams t
  WHERE ((t.id = members.team_id) AND (t.owner_id = auth.uid())))));


--
-- Name: members Owners see members; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "Owners see members" ON public.members FOR SELECT TO authenticated USING ((EXISTS ( SELECT 1
   FROM public.teams t
  WHERE ((t.id = members.team_id) AND (t.owner_id = auth.uid())))));


--
-- Name: profiles Public profiles; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "Public profiles" ON public.profiles FOR SELECT USING ((is_public OR (( SELECT auth.uid() AS uid) = id)));


--
-- Name: announcements Published; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "Published" ON public.announcements FOR SELECT TO anon USING ((published AND (audience <> 'staff'::text)));


--
-- Name: tasks Tasks of own teams; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "Tasks of own teams" ON public.tasks FOR SELECT TO authenticated USING ((team_id IN ( SELECT members.team_id
   FROM public.members
  WHERE (members.user_id = auth.uid()))));


--
-- Name: teams Teams of owners; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "Teams of owners" ON public.teams TO authenticated USING ((owner_id = auth.uid()));


--
-- Name: tasks Watched tasks; Type: POLICY; Schema: public; Owner: -
--

CREATE POLICY "Watched tasks" ON public.tasks FOR SELECT USING ((auth.uid() = ANY (watcher_ids)));


--
-- Name: announcements; Type: ROW SECURITY; Schema: public; Owner: -
--

ALTER TABLE public.announcements ENABLE ROW LEVEL SECURITY;

--
-- Name: log; Type: ROW SECURITY; Schema: public; Owner: -
--

ALTER TABLE public.log ENABLE ROW LEVEL SECURITY;

--
-- Name: members; Type: ROW SECURITY; Schema: public; Owner: -
--

ALTER TABLE public.members ENABLE ROW LEVEL SECURITY;

--
-- Name: notes; Type: ROW SECURITY; Schema: public; Owner: -
--

ALTER TABLE public.notes ENABLE ROW LEVEL SECURITY;

--
-- Name: profiles; Type: ROW SECURITY; Schema: public; Owner: -
--

ALTER TABLE public.profiles ENABLE ROW LEVEL SECURITY;

--
-- Name: slots; Type: ROW SECURITY; Schema: public; Owner: -
--

ALTER TABLE public.slots ENABLE ROW LEVEL SECURITY;

--
-- Name: tasks; Type: ROW SECURITY; Schema: public; Owner: -
--

ALTER TABLE public.tasks ENABLE ROW LEVEL SECURITY;

--
-- Name: teams; Type: ROW SECURITY; Schema: public; Owner: -
--

ALTER TABLE public.teams ENABLE ROW LEVEL SECURITY;

--
-- Name: objects Avatars are seen; Type: POLICY; Schema: storage; Owner: -
--

CREATE POLICY "Avatars are seen" ON storage.objects FOR SELECT USING ((bucket_id = 'avatars'::text));


--
-- Name: objects Own avatars; Type: POLICY; Schema: storage; Owner: -
--

CREATE POLICY "Own avatars" ON storage.objects FOR INSERT TO authenticated WITH CHECK (((bucket_id = 'avatars'::text) AND ((storage.foldername(name))[1] = (auth.uid())::text)));


--
-- Name: objects Own avatars again; Type: POLICY; Schema: storage; Owner: -
--

CREATE POLICY "Own avatars again" ON storage.objects FOR UPDATE TO authenticated USING (((bucket_id = 'avatars'::text) AND ((storage.foldername(name))[1] = (auth.uid())::text)));


--
-- Name: objects Own papers; Type: POLICY; Schema: storage; Owner: -
--

CREATE POLICY "Own papers" ON storage.objects FOR SELECT TO authenticated USING (((bucket_id = 'papers'::text) AND (owner_id = (auth.uid())::text)));


--
-- Name: objects; Type: ROW SECURITY; Schema: storage; Owner: -
--

ALTER TABLE storage.objects ENABLE ROW LEVEL SECURITY;

--
-- Name: SCHEMA auth; Type: ACL; Schema: -; Owner: -
--

GRANT USAGE ON SCHEMA auth TO anon;
GRANT USAGE ON SCHEMA auth TO authenticated;
GRANT USAGE ON SCHEMA auth TO service_role;


--
-- Name: SCHEMA public; Type: ACL; Schema: -; Owner: -
--

GRANT USAGE ON SCHEMA public TO anon;
GRANT USAGE ON SCHEMA public TO authenticated;
GRANT USAGE ON SCHEMA public TO service_role;


--
-- Name: SCHEMA storage; Type: ACL; Schema: -; Owner: -
--

GRANT USAGE ON SCHEMA storage TO anon;
GRANT USAGE ON SCHEMA storage TO authenticated;
GRANT USAGE ON SCHEMA storage TO service_role;


--
-- Name: TABLE announcements; Type: ACL; Schema: public; Owner: -
--

GRANT ALL ON TABLE public.announcements TO anon;
GRANT ALL ON TABLE public.announcements TO authenticated;
GRANT ALL ON TABLE public.announcements TO service_role;


--
-- Name: TABLE log; Type: ACL; Schema: public; Owner: -
--

GRANT ALL ON TABLE public.log TO anon;
GRANT ALL ON TABLE public.log TO authenticated;
GRANT ALL ON TABLE public.log TO service_role;


--
-- Name: TABLE members; Type: ACL; Schema: public; Owner: -
--

GRANT ALL ON TABLE public.members TO anon;
GRANT ALL ON TABLE public.members TO authenticated;
GRANT ALL ON TABLE public.members TO service_role;


--
-- Name: TABLE notes; Type: ACL; Schema: public; Owner: -
--

GRANT ALL ON TABLE public.notes TO authenticated;
GRANT ALL ON TABLE public.notes TO service_role;


--
-- Name: TABLE open_table; Type: ACL; Schema: public; Owner: -
--

GRANT ALL ON TABLE public.open_table TO anon;
GRANT ALL ON TABLE public.open_table TO authenticated;
GRANT ALL ON TABLE public.open_table TO service_role;


--
-- Name: TABLE profiles; Type: ACL; Schema: public; Owner: -
--

GRANT INSERT,REFERENCES,DELETE,TRIGGER,TRUNCATE,UPDATE ON TABLE public.profiles TO anon;
GRANT INSERT,REFERENCES,DELETE,TRIGGER,TRUNCATE,UPDATE ON TABLE public.profiles TO authenticated;
GRANT ALL ON TABLE public.profiles TO service_role;


--
-- Name: COLUMN profiles.id; Type: ACL; Schema: public; Owner: -
--

GRANT SELECT(id) ON TABLE public.profiles TO anon;
GRANT SELECT(id) ON TABLE public.profiles TO authenticated;


--
-- Name: COLUMN profiles.username; Type: ACL; Schema: public; Owner: -
--

GRANT SELECT(username) ON TABLE public.profiles TO anon;
GRANT SELECT(username) ON TABLE public.profiles TO authenticated;


--
-- Name: COLUMN profiles.email; Type: ACL; Schema: public; Owner: -
--

GRANT SELECT(email) ON TABLE public.profiles TO anon;
GRANT SELECT(email) ON TABLE public.profiles TO authenticated;


--
-- Name: COLUMN profiles.is_public; Type: ACL; Schema: public; Owner: -
--

GRANT SELECT(is_public) ON TABLE public.profiles TO anon;
GRANT SELECT(is_public) ON TABLE public.profiles TO authenticated;


--
-- Name: TABLE slots; Type: ACL; Schema: public; Owner: -
--

GRANT ALL ON TABLE public.slots TO anon;
GRANT ALL ON TABLE public.slots TO authenticated;
GRANT ALL ON TABLE public.slots TO service_role;


--
-- Name: TABLE tasks; Type: ACL; Schema: public; Owner: -
--

GRANT ALL ON TABLE public.tasks TO anon;
GRANT ALL ON TABLE public.tasks TO authenticated;
GRANT ALL ON TABLE public.tasks TO service_role;


--
-- Name: TABLE task_titles; Type: ACL; Schema: public; Owner: -
--

GRANT ALL ON TABLE public.task_titles TO anon;
GRANT ALL ON TABLE public.task_titles TO authenticated;
GRANT ALL ON TABLE public.task_titles TO service_role;


--
-- Name: TABLE teams; Type: ACL; Schema: public; Owner: -
--

GRANT ALL ON TABLE public.teams TO anon;
GRANT ALL ON TABLE public.teams TO authenticated;
GRANT ALL ON TABLE public.teams TO service_role;


--
-- Name: TABLE objects; Type: ACL; Schema: storage; Owner: -
--

GRANT ALL ON TABLE storage.objects TO anon;
GRANT ALL ON TABLE storage.objects TO authenticated;


--
-- PostgreSQL database dump complete
--

\unrestrict 4H1GjcBfAMdFiCujFc8UhV2dxysXfxMfCSRG9gqRYXya9SsAnfPkbiu24R0AlBr

