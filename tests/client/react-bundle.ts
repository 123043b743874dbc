import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type BuildOutput, build } from "bun";

export const REACT_VERSIONS = ["18", "19"] as const;
export type ReactVersion = (typeof REACT_VERSIONS)[number];

/** Bundles a module of this folder with one version of React. Gives the text of the bundle. */
export async function bundleReact(entry: string, version: ReactVersion, target: "browser" | "bun"): Promise<string> {
  const output: BuildOutput = await build({
    entrypoints: [fileURLToPath(new URL(entry, import.meta.url))],
    target,
    // React reads it, and has other code for development.
    define: { "process.env.NODE_ENV": '"development"' },
    plugins: [
      {
        name: "react version",
        setup(builder) {
          builder.onResolve({ filter: /^react(?:-dom)?(?:\/|$)/ }, ({ path }) => {
            const [name = "", ...rest] = path.split("/");
            const own = version === "19" ? name : `${name}-${version}`;
            return { path: Bun.resolveSync([own, ...rest].join("/"), import.meta.dir) };
          });
        },
      },
    ],
  });
  const [bundle] = output.outputs;
  if (bundle === undefined) throw new Error(`${entry} was not bundled`);
  return bundle.text();
}

/** Runs such a bundle with Bun. Gives what it prints. */
export async function runReact(entry: string, version: ReactVersion, directory: string): Promise<string> {
  const path = join(directory, `${version}.js`);
  mkdirSync(dirname(path), { recursive: true });
  await Bun.write(path, await bundleReact(entry, version, "bun"));
  const child = Bun.spawn([process.execPath, path], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(errors);
  return output;
}
