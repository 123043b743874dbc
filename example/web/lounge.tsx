import { useAuth, useLive, usePresence, useRecord, useRoom } from "platform/react";
import { type ReactNode, useDeferredValue, useEffect, useReducer, useState } from "react";
import { client, shared } from "./client.ts";
import { Form, Poster, Status } from "./parts.tsx";

/** Lounge that plays one film in sync for everyone, with a chat that is not stored. */
export function LoungePage() {
  const { user } = useAuth();
  if (user === null) {
    return (
      <section className="narrow">
        <h1>Lounge</h1>
        <p>Watch together: propose a film, vote, and see the same second of it.</p>
        <button type="button" onClick={() => void client.auth.signInAnonymously()}>
          Come in as a guest
        </button>
      </section>
    );
  }
  return <Lounge name={user.displayName ?? "Guest"} />;
}

interface LoungeState {
  film: string | null;
  isPlaying: boolean;
  positionSeconds: number;
  votes: Record<string, boolean>;
}

function Lounge({ name }: { name: string }) {
  const { status, shared: state, act } = useRoom(client.rooms("lounge"), "tonight");
  const { users } = usePresence(client.presence<{ name: string }>("lounge"), { name });
  if (status === "joining" || status === "refused") return <Status status={status} />;
  // The client sees the room's state as plain JSON. The config's actions set these members.
  const { film, isPlaying, positionSeconds, votes } = state as unknown as LoungeState;
  const ballots = Object.values(votes);
  return (
    <section className="lounge">
      <h1>Lounge</h1>
      <ul className="tags" aria-label="Here now">
        {users.map(({ connectionId, state: { name } }) => (
          <li key={connectionId}>{name}</li>
        ))}
      </ul>
      {film !== null && (
        <Screen id={film}>
          <Position
            isPlaying={isPlaying}
            startSeconds={positionSeconds}
            onSwitch={(type, seconds) => void act(type, seconds)}
          />
          <p className="votes">
            <button type="button" onClick={() => void act("vote", true)}>
              For {ballots.filter((vote) => vote).length}
            </button>
            <button type="button" onClick={() => void act("vote", false)}>
              Against {ballots.filter((vote) => !vote).length}
            </button>
          </p>
        </Screen>
      )}
      <Proposal onPropose={(id) => void act("propose", id)} />
      <Chat name={name} />
    </section>
  );
}

function Screen({ id, children }: { id: string; children: ReactNode }) {
  const { record: film } = useRecord(shared.table("films"), id);
  if (film === null) return null;
  return (
    <article className="screen">
      <Poster film={film} />
      <div>
        <h2>{film.title}</h2>
        {children}
      </div>
    </article>
  );
}

interface PositionProps {
  isPlaying: boolean;
  /** Position at the last start or pause. */
  startSeconds: number;
  onSwitch: (type: "play" | "pause", seconds: number) => void;
}

/** Stand-in for a player: shows the shared position. */
function Position({ isPlaying, startSeconds, onSwitch }: PositionProps) {
  const [seconds, setSeconds] = useState(startSeconds);
  useEffect(() => {
    setSeconds(startSeconds);
    if (!isPlaying) return;
    const startedAt = performance.now();
    const timer = setInterval(() => setSeconds(startSeconds + (performance.now() - startedAt) / 1000), 250);
    return () => clearInterval(timer);
  }, [isPlaying, startSeconds]);
  const time = new Date(seconds * 1000).toISOString().slice(11, 19);
  return (
    <p className="position">
      <button type="button" onClick={() => onSwitch(isPlaying ? "pause" : "play", Math.floor(seconds))}>
        {isPlaying ? "Pause" : "Play"}
      </button>
      <time>{time}</time>
    </p>
  );
}

function Proposal({ onPropose }: { onPropose: (filmId: string) => void }) {
  const [text, setText] = useState("");
  const wanted = useDeferredValue(text.trim());
  return (
    <div className="proposal">
      <input
        type="search"
        placeholder="Propose a film"
        aria-label="Propose a film"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {wanted.length > 1 && (
        <Suggestions
          text={wanted}
          onChoose={(id) => {
            setText("");
            onPropose(id);
          }}
        />
      )}
    </div>
  );
}

function Suggestions({ text, onChoose }: { text: string; onChoose: (filmId: string) => void }) {
  const query = shared.table("films").where("title", "icontains", text).sort("imdbVotes", "desc").limit(6);
  const { items } = useLive(query);
  return (
    <ul className="rows">
      {items.map((film) => (
        <li key={film.id}>
          <button type="button" className="quiet" onClick={() => onChoose(film.id)}>
            {film.title} <small>{film.releaseDate?.slice(0, 4)}</small>
          </button>
        </li>
      ))}
    </ul>
  );
}

interface Line {
  name: string;
  text: string;
}

const KEPT_LINES = 50;

function Chat({ name }: { name: string }) {
  const [lines, add] = useReducer((known: readonly Line[], line: Line) => [...known, line].slice(-KEPT_LINES), []);
  useEffect(() => client.broadcast("lounge").on<Line>("said", add), []);
  async function say({ text = "" }: Record<string, string>) {
    await client.broadcast("lounge").send("said", { name, text });
    add({ name: "You", text });
  }
  return (
    <>
      <ol className="chat" aria-label="Chat">
        {lines.map(({ name, text }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines are only added
          <li key={index} className={name === "You" ? "own" : ""}>
            <small>{name}</small>
            <p>{text}</p>
          </li>
        ))}
      </ol>
      <Form className="line" onSend={say}>
        <input
          name="text"
          required
          maxLength={500}
          placeholder="Say something"
          aria-label="Say something"
          autoComplete="off"
        />
        <button type="submit">Say</button>
      </Form>
    </>
  );
}
