import { join } from "node:path";

/**
 * How the pages are bundled, as `bun build example/web/main.tsx --outdir example/web/public/app --splitting --minify` does it.
 * The parts of the client that a page may not need stay files of their own.
 */
export const PAGES_BUILD: Bun.BuildConfig = {
  entrypoints: [join(import.meta.dir, "main.tsx")],
  outdir: join(import.meta.dir, "public/app"),
  target: "browser",
  splitting: true,
  minify: true,
  define: { "process.env.NODE_ENV": '"production"' },
};
