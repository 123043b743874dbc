import { AccountButton, useAuth, useLive } from "platform/react";
import { shared } from "./client.ts";
import { Form, Status } from "./parts.tsx";
import { Link, navigate } from "./router.tsx";

const clubs = shared.table("clubs");

/** Returns a club's id, such as `0198…c7-film-noir`. The founder's id in it makes the club theirs. */
const idOf = (ownerId: string, name: string): string =>
  `${ownerId}-${name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")}`.slice(0, 60);

export function ClubsPage() {
  const { user } = useAuth();
  const { items, status } = useLive(clubs.sort("name"));
  const isMember = user !== null && !user.isAnonymous;
  async function found({ name = "" }: Record<string, string>) {
    if (user === null) return;
    const { id } = await clubs.insert({ id: idOf(user.id, name), name });
    navigate(`/clubs/${id}`);
  }
  return (
    <section className="narrow">
      <h1>Clubs</h1>
      <p>A club is private: its founder invites others.</p>
      <Status status={status} />
      <ul className="rows">
        {items.map(({ id, name, ownerId }) => (
          <li key={id}>
            <Link to={`/clubs/${id}`}>
              {name}
              {ownerId === user?.id && <small>yours</small>}
            </Link>
          </li>
        ))}
      </ul>
      {isMember ? (
        <Form className="line" onSend={found}>
          <input name="name" required maxLength={40} placeholder="Name of a new club" aria-label="Name of a new club" />
          <button type="submit">Found it</button>
        </Form>
      ) : (
        <p>
          <AccountButton className="quiet" /> to found one.
        </p>
      )}
    </section>
  );
}
