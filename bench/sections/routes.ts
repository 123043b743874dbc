import { measureRoutes } from "../cases/routes.ts";
import type { Section } from "../support/section.ts";
import { rate } from "./figures.ts";

const ROUTE_TARGET = 0.8;
const SITE_TARGET = 0.9;

export const routes: Section = {
  name: "routes",
  title: "Routes and site",
  about: `Routes of the config with schemas for body and answer, 16 connections of wrk. The floor is the same route on Elysia alone
(\`bench/routes-floor.ts\`), for which Bun itself finds the route. A file of 1 MiB of the site; its floor is the download of the same file from a
bucket of the same server. In turns, five rounds of three seconds; medians.`,
  async run(bench) {
    bench.note("routes and site");
    const { post, get, site } = await measureRoutes();
    const figures = [
      { ...rate("POST with JSON", post), wanted: ROUTE_TARGET },
      { ...rate("GET with a parameter", get), wanted: ROUTE_TARGET },
      { ...rate("file of the site, 1 MiB", site), wanted: SITE_TARGET },
    ];
    return figures.map(({ wanted, ...figure }) => ({
      ...figure,
      target: `≥ ${wanted} of the floor`,
      isMet: (figure.ratio ?? 0) >= wanted,
    }));
  },
};
