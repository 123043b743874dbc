import { AccountButton, useAuth, useLive } from "platform/react";
import { shared } from "./client.ts";
import { FilmCard, Status } from "./parts.tsx";

export function WatchListPage() {
  const { user } = useAuth();
  if (user === null || user.isAnonymous) {
    return (
      <p className="status">
        <AccountButton className="quiet" /> to keep a list of films to watch.
      </p>
    );
  }
  return <WatchList />;
}

function WatchList() {
  const { items, status } = useLive(shared.table("watchlist").sort("createdAt", "desc").expand("film"));
  return (
    <>
      <h1>My list</h1>
      <Status status={status}>{items.length === 0 && <p className="status">Nothing here yet.</p>}</Status>
      <section className="cards" aria-label="Films">
        {items.map(({ id, expand: { film } }) => film !== null && <FilmCard key={id} film={film} />)}
      </section>
    </>
  );
}
