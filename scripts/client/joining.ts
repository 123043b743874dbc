import { join } from "node:path";
import type { ClientBundle } from "./bundle.ts";

const INDEX = "index.js";
const EXPORTS = /export\{([^}]*)\};?$/;
const IMPORTS = /import\{([^}]*)\}from"\.\/([^"]+)";?/g;

/** Parses a list of imports or exports, such as `a as b,c`. */
const pairsOf = (list: string): (readonly [from: string, to: string])[] =>
  list.split(",").map((one) => {
    const [from = "", to = from] = one.split(" as ");
    return [from, to];
  });
const asList = (pairs: readonly (readonly [from: string, to: string])[]): string =>
  pairs.map(([from, to]) => (from === to ? from : `${from} as ${to}`)).join();

/**
 * Makes one file of the module and its only static import, which the bundler keeps apart: a request and a list of names less. The
 * other chunks then import from the module, by the names that it uses itself.
 */
export function joined({ files, metafile }: ClientBundle): ClientBundle {
  const texts = new Map([...files].map(([path, content]) => [path, new TextDecoder().decode(content)]));
  const index = texts.get(INDEX) ?? "";
  const [[, imported = "", path = ""] = [], another] = [...index.matchAll(IMPORTS)];
  const main = texts.get(path) ?? "";
  const exported = EXPORTS.exec(main)?.[1];
  if (exported === undefined || another !== undefined) throw new Error("The module does not import one chunk alone");

  const inside = new Map(pairsOf(exported).map(([name, outside]) => [outside, name]));
  const nameOf = (outside: string): string => inside.get(outside) ?? outside;
  const ofIndex = new Map(pairsOf(imported).map(([outside, local]) => [local, nameOf(outside)]));
  const exports = pairsOf(EXPORTS.exec(index)?.[1] ?? "").map(
    ([local, name]) => [ofIndex.get(local) ?? local, name] as const,
  );
  const taken = new Set<string>();
  const chunks = [...texts].flatMap(([name, text]) => {
    if (name === INDEX || name === path) return [];
    const changed = text.replace(IMPORTS, (statement, list: string, from: string) => {
      if (from !== path) return statement;
      const pairs = pairsOf(list).map(([outside, local]) => [nameOf(outside), local] as const);
      for (const [own] of pairs) taken.add(own);
      return `import{${asList(pairs)}}from"./${INDEX}";`;
    });
    return [[name, changed] as const];
  });
  const list = asList([...exports, ...[...taken].map((name) => [name, name] as const)]);
  const all = [[INDEX, main.replace(EXPORTS, `export{${list}};`)] as const, ...chunks];
  return {
    files: new Map(all.map(([name, text]) => [name, new TextEncoder().encode(text)])),
    metafile: { ...metafile, outputs: joinedOutputs(metafile.outputs, path) },
  };
}

type Outputs = ClientBundle["metafile"]["outputs"];

/** Gives the module the inputs and imports of the chunk at `path`. */
function joinedOutputs(outputs: Outputs, path: string): Outputs {
  const placeOf = (given: string) => (join(".", given) === path ? INDEX : given);
  const main = Object.entries(outputs).find(([name]) => join(".", name) === path)?.[1];
  return Object.fromEntries(
    Object.entries(outputs).flatMap(([name, output]) => {
      if (join(".", name) === path) return [];
      const own =
        join(".", name) === INDEX && main !== undefined
          ? { ...output, inputs: main.inputs, imports: main.imports }
          : output;
      return [[name, { ...own, imports: own.imports.map((one) => ({ ...one, path: placeOf(one.path) })) }]];
    }),
  );
}
