import { join } from "node:path";

/**
 * Options of the pages' bundle, as `bun build example/web/main.tsx --outdir example/web/public/app --splitting --minify`.
 * Optional parts of the client stay separate files.
 */
export const PAGES_BUILD: Bun.BuildConfig = {
  entrypoints: [join(import.meta.dir, "main.tsx")],
  outdir: join(import.meta.dir, "public/app"),
  target: "browser",
  splitting: true,
  minify: true,
  define: { "process.env.NODE_ENV": '"production"' },
};
