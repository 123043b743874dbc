import { AccountButton, useAuth, useLive, useRecord, useUpload } from "platform/react";
import { client, type Film, shared } from "./client.ts";
import { Form, Poster, Status } from "./parts.tsx";

export function FilmPage({ id }: { id: string }) {
  const { record: film, status } = useRecord(shared.table("films"), id);
  const { user } = useAuth();
  if (film === null)
    return status === "live" ? <p className="status">There is no such film.</p> : <Status status={status} />;
  return (
    <article className="film">
      <aside>
        <Poster film={film} />
        {user !== null && !user.isAnonymous && <WatchListButton film={film} />}
        {(user?.role === "editor" || user?.role === "admin") && <PosterUpload film={film} />}
      </aside>
      <div>
        <h1>{film.title}</h1>
        <p className="lead">
          {[film.releaseDate?.slice(0, 4), film.director, film.runningTime && `${film.runningTime} min`, film.rating]
            .filter(Boolean)
            .join(" · ")}
        </p>
        <dl>
          <Fact name="Genre" value={film.genre} />
          <Fact name="IMDb" value={film.imdbRating && `★ ${film.imdbRating.toFixed(1)}`} />
          <Fact name="Rotten Tomatoes" value={film.rottenTomatoes && `${film.rottenTomatoes} %`} />
          <Fact name="Budget" value={dollars(film.budget)} />
          <Fact name="Worldwide" value={dollars(film.worldwideGross)} />
        </dl>
        <Reviews film={film} />
      </div>
    </article>
  );
}

const dollars = (amount: number | null): string | null =>
  amount === null ? null : `$${new Intl.NumberFormat("en", { notation: "compact" }).format(amount)}`;

const Fact = ({ name, value }: { name: string; value: string | number | null }) =>
  value === null || value === 0 ? null : (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );

const watchList = shared.table("watchlist");

function WatchListButton({ film }: { film: Film }) {
  const { items } = useLive(watchList.where("film", "==", film.id));
  const [entry] = items;
  const toggle = () => (entry === undefined ? watchList.insert({ film: film.id }) : watchList.delete(entry.id));
  return (
    <button type="button" aria-pressed={entry !== undefined} onClick={() => void toggle()}>
      {entry === undefined ? "Add to my list" : "On my list ✓"}
    </button>
  );
}

/**
 * Upload of a poster. Large pictures are sent in parts: after a lost connection or a reload, choosing the same file again sends
 * only what is missing.
 */
function PosterUpload({ film }: { film: Film }) {
  const { upload, status, progress, error } = useUpload(client.storage("posters"));
  async function choose(file: File | undefined) {
    if (file === undefined) return;
    const { key } = await upload(`${film.id}/${file.name}`, file);
    await shared.table("films").update(film.id, { poster: key });
  }
  return (
    <label className="upload">
      {status === "uploading" ? `${Math.round((100 * progress.loaded) / progress.total)} %` : "Upload a poster"}
      <input type="file" accept="image/*" onChange={(event) => void choose(event.target.files?.[0])} />
      {status === "uploading" && <progress value={progress.loaded} max={progress.total} />}
      {error !== null && <span role="alert">{error.message}</span>}
    </label>
  );
}

const reviews = shared.table("reviews");

function Reviews({ film }: { film: Film }) {
  const { user } = useAuth();
  const { items, status } = useLive(reviews.where("film", "==", film.id).sort("createdAt", "desc"));
  const own = items.find(({ ownerId }) => ownerId === user?.id);
  return (
    <section>
      <h2>Reviews</h2>
      {user === null || user.isAnonymous ? (
        <p>
          <AccountButton className="quiet" /> to write one.
        </p>
      ) : (
        own === undefined && (
          <Form
            className="review"
            onSend={({ stars, text = "" }) => reviews.insert({ film: film.id, stars: Number(stars), text })}
          >
            <Stars />
            <textarea name="text" rows={2} maxLength={5000} placeholder="What did you think?" required />
            <button type="submit">Publish</button>
          </Form>
        )
      )}
      <Status status={status} />
      {items.map((review) => (
        <blockquote key={review.id}>
          <span className="rating" role="img" aria-label={`${review.stars} of 5 stars`}>
            {"★".repeat(review.stars)}
          </span>
          <p>{review.text}</p>
          {review.ownerId === user?.id && (
            <button type="button" className="quiet" onClick={() => void reviews.delete(review.id)}>
              Delete
            </button>
          )}
        </blockquote>
      ))}
    </section>
  );
}

const Stars = () => (
  <span className="stars">
    {[5, 4, 3, 2, 1].map((stars) => (
      <label key={stars} title={`${stars} stars`}>
        <input type="radio" name="stars" value={stars} required aria-label={`${stars} stars`} />★
      </label>
    ))}
  </span>
);
