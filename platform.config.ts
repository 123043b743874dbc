import { t } from "elysia";
import { type Auth, defineConfig, Refusal } from "platform";

// A film club, which `npm start` serves. Its 3,201 films are imported at the first start, and its pages are in example/web.

/** Editors maintain the catalogue. Roles are set through the administration endpoints. */
const isEditor = (auth: Auth | null) => auth?.role === "editor" || auth?.role === "admin";

/** A user with an account. Anonymous users may read, and join the lounge. */
const isMember = (auth: Auth | null) => auth !== null && !auth.isAnonymous;

/** The founder of a club owns it: the club's id begins with their user id, as in `0198…c7-noir`. */
const isFounder = (auth: Auth | null, clubId: string) => auth !== null && clubId.startsWith(auth.id);

export default defineConfig({
  databases: {
    shared: {
      tables: {
        films: {
          schema: {
            title: { type: "string", required: true, min: 1, max: 200 },
            director: { type: "string", max: 200 },
            distributor: { type: "string", max: 200 },
            rating: { type: "string", enum: ["G", "PG", "PG-13", "R", "NC-17", "Not Rated", "Open"] },
            genre: { type: "string", max: 50 },
            creativeType: { type: "string", max: 50 },
            source: { type: "string", max: 50 },
            releaseDate: { type: "date" },
            runningTime: { type: "integer", min: 1 }, // minutes
            budget: { type: "integer", min: 0 }, // US dollars, as the three below
            usGross: { type: "integer", min: 0 },
            worldwideGross: { type: "integer", min: 0 },
            dvdSales: { type: "integer", min: 0 },
            imdbRating: { type: "number", min: 0, max: 10 },
            imdbVotes: { type: "integer", min: 0 },
            rottenTomatoes: { type: "integer", min: 0, max: 100 }, // percent
            poster: { type: "string", max: 200 }, // its key in the bucket
          },
          fts: ["title", "director"],
          indexes: [
            { fields: ["title"] },
            { fields: ["genre", "imdbRating"] },
            { fields: ["imdbRating"] },
            { fields: ["releaseDate"] },
          ],
          access: {
            read: true,
            insert: isEditor,
            update: isEditor,
            delete: (auth) => auth?.role === "admin",
          },
        },

        reviews: {
          schema: {
            film: { type: "string", required: true, references: { table: "films", onDelete: "cascade" } },
            ownerId: { type: "string" }, // set by the hook below
            stars: { type: "integer", required: true, min: 1, max: 5 },
            text: { type: "text", max: 5000 },
          },
          indexes: [{ fields: ["film", "ownerId"], unique: true }], // one review of a film by each member
          access: {
            read: true,
            insert: isMember,
            update: (auth, review, next) => review.ownerId === auth?.id && next.ownerId === review.ownerId,
            delete: (auth, review) => review.ownerId === auth?.id || isEditor(auth),
            upsert: "matching", // an upsert must not overwrite another member's review
          },
          hooks: {
            beforeInsert: (auth, review) => (auth === null ? review : { ...review, ownerId: auth.id }),
            afterInsert: (_auth, review, app) =>
              app.broadcast("broadcast:reviews", "new", { film: review.film, stars: review.stars }),
          },
        },

        // What each member wants to see.
        watchlist: {
          schema: {
            film: { type: "string", required: true, references: { table: "films", onDelete: "cascade" } },
            ownerId: { type: "string" }, // set by the hook below
          },
          indexes: [{ fields: ["ownerId", "film"], unique: true }],
          access: {
            read: (auth) => auth !== null && [["ownerId", "==", auth.id]],
            insert: isMember,
            delete: (auth, entry) => entry.ownerId === auth?.id,
            upsert: "matching",
          },
          hooks: {
            beforeInsert: (auth, entry) => (auth === null ? entry : { ...entry, ownerId: auth.id }),
          },
        },

        // The names of the clubs, for everybody to see. What is in a club is in a file of its own.
        clubs: {
          schema: {
            name: { type: "string", required: true, min: 1, max: 40 },
            ownerId: { type: "string" }, // set by the hook below
          },
          access: {
            read: true,
            insert: (auth, club) => isMember(auth) && isFounder(auth, club.id),
            delete: (auth, club) => isFounder(auth, club.id),
            upsert: "matching",
          },
          hooks: {
            beforeInsert: (auth, club) => (auth === null ? club : { ...club, ownerId: auth.id }),
          },
        },
      },
    },

    // One file per club: a forgotten filter cannot show another club's messages.
    clubs: {
      instance: true,
      access: {
        create: (auth, clubId) => isMember(auth) && isFounder(auth, clubId),
        open: (auth, clubId, { table }) =>
          isFounder(auth, clubId) || (auth !== null && table("members").where("userId", "==", auth.id).exists()),
      },
      tables: {
        members: {
          schema: {
            userId: { type: "string", required: true, unique: true },
            nickname: { type: "string", required: true, min: 1, max: 40 },
            favouriteFilm: { type: "string" },
          },
          access: {
            read: true, // for everyone who may open the club
            insert: (auth, _member, { instanceId }) => isFounder(auth, instanceId ?? ""), // others by an invitation
            update: (auth, member, next) => member.userId === auth?.id && next.userId === member.userId,
            delete: (auth, member, { instanceId }) => member.userId === auth?.id || isFounder(auth, instanceId ?? ""),
            upsert: "matching",
          },
        },
        messages: {
          schema: {
            authorId: { type: "string" }, // set by the hook below
            text: { type: "text", required: true, min: 1, max: 2000 },
            updatedAt: false,
          },
          fts: ["text"],
          indexes: [{ fields: ["createdAt"] }],
          access: {
            read: true,
            insert: isMember,
            update: false,
            delete: (auth, message) => message.authorId === auth?.id,
            upsert: "matching",
          },
          hooks: {
            beforeInsert: (auth, message) => (auth === null ? message : { ...message, authorId: auth.id }),
          },
        },
      },
    },
  },

  storage: {
    buckets: {
      posters: {
        maxFileSize: 25 * 1024 * 1024,
        thumbs: ["400x600"],
        access: { read: true, write: isEditor, delete: isEditor },
      },
      // Keys begin with the owner's id: `0198…c7/me.jpg`.
      avatars: {
        maxFileSize: 512 * 1024,
        access: {
          read: (auth) => auth !== null,
          write: (auth, file) => isMember(auth) && file.key.startsWith(`${auth?.id}/`),
          delete: (auth, file) => isMember(auth) && file.key.startsWith(`${auth?.id}/`),
        },
      },
    },
  },

  // The pages for signing in, the account and invitations are the server's own, at /auth.
  auth: {
    anonymous: true,
    magicLink: true,
    mfa: { totp: true },
    pages: { name: "Film club", accent: "#b3362b", home: "/", pictures: "avatars" },
    mail: {
      templates: {
        invite: { subject: "{{inviter}} invites you to {{data.name}}", text: "{{link}}", button: "Join {{data.name}}" },
      },
    },
    hooks: {
      // Whoever accepts is a member. It may run again.
      async afterAccept({ id, displayName }, { data }, app) {
        const members = app.db("clubs", String(data["club"])).table("members");
        if ((await members.where("userId", "==", id).first()) !== null) return;
        await members.insert({ userId: id, nickname: displayName?.slice(0, 40) || "Somebody" });
      },
    },
  },
  routes: (api) =>
    api.post(
      "/clubs/:id/invitations",
      async ({ auth, params, body, app }) => {
        const club = await app.db("shared").table("clubs").get(params.id);
        if (auth === null || club === null || !isFounder(auth, params.id))
          throw new Refusal("Founders invite", { status: 403 });
        await app.users.invite(body.email, { data: { club: params.id, name: club["name"] }, invitedBy: auth.id });
        return { ok: true };
      },
      { body: t.Object({ email: t.String() }) },
    ),

  // These three are for the club's own servers: they take the service key.
  kv: { settings: {} },
  d1: { statistics: {} },
  vectorize: { tastes: { dimensions: 8 } },

  rooms: {
    // Watching together: who is in the lounge proposes a film, votes, and sees the same second of it.
    lounge: {
      maxPlayers: 50,
      access: { join: (auth) => auth !== null },
      onCreate(room) {
        room.setShared({ film: null, isPlaying: false, positionSeconds: 0, votes: {} });
      },
      onJoin(room) {
        room.setMetadata({ present: room.players().length });
      },
      onLeave(room) {
        room.setMetadata({ present: room.players().length });
      },
      actions: {
        async propose(room, player, payload) {
          const film = await room.app.db("shared").table("films").get(String(payload));
          if (film === null) throw new Refusal("There is no such film");
          room.setShared((state) => ({
            ...state,
            film: film["id"] ?? null,
            positionSeconds: 0,
            isPlaying: false,
            votes: {},
          }));
          room.send("proposed", { title: film["title"] ?? null, by: player.userId }, { except: [player.userId] });
          return { title: film["title"] ?? null };
        },
        vote(room, player, payload) {
          const votes = room.shared["votes"];
          room.setShared((state) => ({
            ...state,
            votes: { ...(typeof votes === "object" ? votes : {}), [player.userId]: payload === true },
          }));
        },
        play(room, _player, payload) {
          const positionSeconds = typeof payload === "number" && payload >= 0 ? payload : 0;
          room.setShared((state) => ({ ...state, isPlaying: true, positionSeconds }));
        },
        pause(room, _player, payload) {
          const positionSeconds = typeof payload === "number" && payload >= 0 ? payload : 0;
          room.setShared((state) => ({ ...state, isPlaying: false, positionSeconds }));
        },
        say(room, player, payload) {
          room.send("said", { userId: player.userId, text: String(payload).slice(0, 500) });
        },
      },
    },
  },

  // `npm start` builds the pages; see example/web.
  site: { directory: "./example/web/public", spa: true },

  api: { schemaEndpoint: true },
});
