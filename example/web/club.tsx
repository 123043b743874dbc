import type { User } from "platform/client";
import { useAuth, useLive, useRecord } from "platform/react";
import { clubDatabase, shared } from "./client.ts";
import { Form, Status } from "./parts.tsx";
import { Link } from "./router.tsx";

const requests = shared.table("requests");

export function ClubPage({ id }: { id: string }) {
  const { user } = useAuth();
  const { record: club } = useRecord(shared.table("clubs"), id);
  if (user === null || user.isAnonymous) {
    return (
      <p className="status">
        <Link to="/account">Sign in</Link> to visit a club.
      </p>
    );
  }
  return (
    <section className="narrow">
      <h1>{club?.name}</h1>
      <Inside id={id} user={user} />
    </section>
  );
}

/** Content of a club. Users without access get the status `denied`, until the founder admits them. */
function Inside({ id, user }: { id: string; user: User }) {
  const club = clubDatabase(id);
  const { items: members, status } = useLive(club.table("members").sort("nickname"));
  const isFounder = id.startsWith(user.id);
  if (status === "denied") return <AskToJoin id={id} user={user} />;
  if (status === "loading") return <Status status={status} />;
  const nameOf = (userId: string | null) =>
    members.find((member) => member.userId === userId)?.nickname ??
    (userId !== null && id.startsWith(userId) ? "Founder" : "Former member");
  return (
    <>
      <ul className="tags" aria-label="Members">
        <li>{isFounder ? "You" : "Founder"}</li>
        {members.map((member) => (
          <li key={member.id}>
            {member.nickname}
            {(isFounder || member.userId === user.id) && (
              <button
                type="button"
                aria-label={`Remove ${member.nickname}`}
                onClick={() => void club.table("members").delete(member.id)}
              >
                ×
              </button>
            )}
          </li>
        ))}
      </ul>
      {isFounder && <Requests id={id} />}
      <Messages id={id} userId={user.id} nameOf={nameOf} />
    </>
  );
}

function AskToJoin({ id, user }: { id: string; user: User }) {
  const { items } = useLive(requests.where("club", "==", id).where("userId", "==", user.id));
  if (items.length > 0) return <p className="status">You have asked. The door opens when the founder lets you in.</p>;
  const ask = () => requests.insert({ club: id, nickname: user.displayName ?? "Somebody" });
  return (
    <>
      <p>This club is private.</p>
      <button type="button" onClick={() => void ask()}>
        Ask to join
      </button>
    </>
  );
}

function Requests({ id }: { id: string }) {
  const { items } = useLive(requests.where("club", "==", id).sort("createdAt"));
  async function letIn({ id: request, userId, nickname }: (typeof items)[number]) {
    if (userId !== null) await clubDatabase(id).table("members").insert({ userId, nickname });
    await requests.delete(request);
  }
  return items.map((request) => (
    <p key={request.id} className="request">
      <span>{request.nickname} asks to join.</span>
      <button type="button" onClick={() => void letIn(request)}>
        Let in
      </button>
    </p>
  ));
}

interface MessagesProps {
  id: string;
  userId: string;
  nameOf: (userId: string | null) => string;
}

function Messages({ id, userId, nameOf }: MessagesProps) {
  const table = clubDatabase(id).table("messages");
  // The last fifty messages, newest at the bottom.
  const { items } = useLive(table.sort("createdAt", "desc").limit(50));
  return (
    <>
      <ol className="chat" aria-label="Messages">
        {items.toReversed().map((message) => (
          <li key={message.id} className={message.authorId === userId ? "own" : ""}>
            <small>{message.authorId === userId ? "You" : nameOf(message.authorId)}</small>
            <p>{message.text}</p>
          </li>
        ))}
      </ol>
      <Form className="line" onSend={({ text = "" }) => table.insert({ text })}>
        <input
          name="text"
          required
          maxLength={2000}
          placeholder="Write to the club"
          aria-label="Message"
          autoComplete="off"
        />
        <button type="submit">Send</button>
      </Form>
    </>
  );
}
