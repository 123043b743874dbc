import { PlatformError } from "platform/client";
import { type ReactNode, type SubmitEvent, useState } from "react";
import { client, type Film } from "./client.ts";
import { Link } from "./router.tsx";

/** Poster: the uploaded picture, or the title on a colour of its own. */
export function Poster({ film }: { film: Film }) {
  if (film.poster !== null) {
    const source = client.storage("posters").url(film.poster, { thumb: "400x600" });
    return <img className="poster" src={source} alt="" loading="lazy" />;
  }
  const hue = [...film.title].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 7);
  return (
    <div className="poster" style={{ "--hue": hue } as object} aria-hidden="true">
      <b>{film.title}</b>
      <span>{film.director}</span>
    </div>
  );
}

export function FilmCard({ film }: { film: Film }) {
  return (
    <Link to={`/films/${film.id}`} className="card">
      <Poster film={film} />
      <strong>{film.title}</strong>
      <small>
        {film.releaseDate?.slice(0, 4)}
        {film.imdbRating !== null && <span className="rating">★ {film.imdbRating.toFixed(1)}</span>}
      </small>
    </Link>
  );
}

/** Status of a live query, unless it is up to date. */
export function Status({ status, children }: { status: string; children?: ReactNode }) {
  if (status === "live") return <>{children}</>;
  const texts: Record<string, string> = {
    loading: "Loading…",
    joining: "Joining…",
    offline: "Offline: this is what was last seen.",
  };
  return <p className="status">{texts[status] ?? "This cannot be shown."}</p>;
}

interface FormProps {
  /** Called on submit. A failure is shown below the fields; success clears the form. */
  onSend: (values: Record<string, string>) => Promise<unknown>;
  className?: string;
  children: ReactNode;
}

export function Form({ onSend, className, children }: FormProps) {
  const [problem, setProblem] = useState("");
  const [isSending, setSending] = useState(false);
  async function send(event: SubmitEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    const values = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]));
    setSending(true);
    try {
      await onSend(values);
      setProblem("");
      form.reset();
    } catch (error) {
      setProblem(error instanceof PlatformError ? error.message : String(error));
    } finally {
      setSending(false);
    }
  }
  return (
    <form className={className} onSubmit={send}>
      <fieldset disabled={isSending}>{children}</fieldset>
      {problem !== "" && <p role="alert">{problem}</p>}
    </form>
  );
}
