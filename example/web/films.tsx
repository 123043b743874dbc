import { useLive } from "platform/react";
import { useDeferredValue, useState } from "react";
import { shared } from "./client.ts";
import { FilmCard, Status } from "./parts.tsx";

const GENRES = [
  "Action",
  "Adventure",
  "Comedy",
  "Documentary",
  "Drama",
  "Horror",
  "Musical",
  "Romantic Comedy",
  "Thriller/Suspense",
  "Western",
];
const PAGE = 48;

const ORDERS = {
  rating: { title: "Best rated", field: "imdbRating", direction: "desc" },
  newest: { title: "Newest", field: "releaseDate", direction: "desc" },
  title: { title: "A to Z", field: "title", direction: "asc" },
} as const;
type Order = keyof typeof ORDERS;

export function FilmsPage() {
  const [text, setText] = useState("");
  const [genre, setGenre] = useState("");
  const [order, setOrder] = useState<Order>("rating");
  const [count, setCount] = useState(PAGE);

  let query = shared.table("films").sort(ORDERS[order].field, ORDERS[order].direction).limit(count);
  const wanted = useDeferredValue(text.trim());
  if (wanted !== "") query = query.where("title", "icontains", wanted);
  if (genre !== "") query = query.where("genre", "==", genre);
  // Ratings by few people are not meaningful.
  if (order === "rating" && wanted === "") query = query.where("imdbVotes", ">", 5000);
  const { items, status, hasMore } = useLive(query);

  return (
    <>
      <h1 className="hidden">Films</h1>
      <search className="filters">
        <input
          type="search"
          placeholder="Search 3,201 films"
          aria-label="Search"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <select aria-label="Genre" value={genre} onChange={(event) => setGenre(event.target.value)}>
          <option value="">All genres</option>
          {GENRES.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <select aria-label="Order" value={order} onChange={(event) => setOrder(event.target.value as Order)}>
          {Object.entries(ORDERS).map(([name, { title }]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </search>
      <Status status={status} />
      <section className="cards" aria-label="Films">
        {items.map((film) => (
          <FilmCard key={film.id} film={film} />
        ))}
      </section>
      {status === "live" && items.length === 0 && <p className="status">No film has “{wanted}” in its title.</p>}
      {hasMore && (
        <button type="button" className="more" onClick={() => setCount(count + PAGE)}>
          More films
        </button>
      )}
    </>
  );
}
