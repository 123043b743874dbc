import type { User } from "platform/client";
import { AccountButton, useAuth, useLive, useRecord } from "platform/react";
import { client, clubDatabase, shared } from "./client.ts";
import { Form, Status } from "./parts.tsx";

export function ClubPage({ id }: { id: string }) {
  const { user } = useAuth();
  const { record: club } = useRecord(shared.table("clubs"), id);
  if (user === null || user.isAnonymous) {
    return (
      <p className="status">
        <AccountButton className="quiet" /> to visit a club.
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

/** Content of a club. Users without access get the status `denied`, until they accept an invitation. */
function Inside({ id, user }: { id: string; user: User }) {
  const club = clubDatabase(id);
  const { items: members, status } = useLive(club.table("members").sort("nickname"));
  const isFounder = id.startsWith(user.id);
  if (status === "denied") return <p className="status">This club is private. Its founder can invite you.</p>;
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
      {isFounder && (
        <Form className="line" onSend={({ email = "" }) => invite(id, email)}>
          <input name="email" type="email" required placeholder="Invite by email" aria-label="Invite by email" />
          <button type="submit">Invite</button>
        </Form>
      )}
      <Messages id={id} userId={user.id} nameOf={nameOf} />
    </>
  );
}

async function invite(id: string, email: string) {
  const { error } = await client.functions.clubs({ id }).invitations.post({ email });
  if (error !== null) throw error;
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
