import { AccountButton, PlatformProvider } from "platform/react";
import { createRoot } from "react-dom/client";
import { client } from "./client.ts";
import { ClubPage } from "./club.tsx";
import { ClubsPage } from "./clubs.tsx";
import { FilmPage } from "./film.tsx";
import { FilmsPage } from "./films.tsx";
import { LoungePage } from "./lounge.tsx";
import { Link, usePath } from "./router.tsx";
import { WatchListPage } from "./watch-list.tsx";

const PAGES = [
  { path: "", title: "Films" },
  { path: "list", title: "My list" },
  { path: "clubs", title: "Clubs" },
  { path: "lounge", title: "Lounge" },
];

function App() {
  const [page = "", id] = usePath();
  return (
    <>
      <header>
        <Link to="/" className="logo">
          Film club
        </Link>
        <nav>
          {PAGES.map(({ path, title }) => (
            <Link key={path} to={`/${path}`} isCurrent={page === path || (page === "films" && path === "")}>
              {title}
            </Link>
          ))}
        </nav>
        <AccountButton className="account quiet" />
      </header>
      <main>
        <Page page={page} id={id} />
      </main>
    </>
  );
}

function Page({ page, id }: { page: string; id: string | undefined }) {
  if (page === "films" && id !== undefined) return <FilmPage key={id} id={id} />;
  if (page === "list") return <WatchListPage />;
  if (page === "clubs") return id === undefined ? <ClubsPage /> : <ClubPage key={id} id={id} />;
  if (page === "lounge") return <LoungePage />;
  return <FilmsPage />;
}

// The role may have changed since the last visit. Offline, the stored user stays.
if (client.auth.user !== null) client.auth.reload().catch(() => {});

const root = document.getElementById("app");
if (root !== null) {
  createRoot(root).render(
    <PlatformProvider client={client}>
      <App />
    </PlatformProvider>,
  );
}
