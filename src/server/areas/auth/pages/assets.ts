import { extname } from "node:path";
import { ownProduct } from "../../../config/loading/product.ts";
import type { PagesConfig } from "../../../config/types.ts";
import { IMMUTABLE } from "../../../http/packed/answers.ts";
import { accentRules } from "./colours.ts";
import script from "./script.txt" with { type: "text" };
import sheet from "./style.txt" with { type: "text" };

/** The addresses of the files that pages load, relative to their path. */
export interface Style {
  sheet: string;
  script: string;
  logo: string | null;
  /** Name of the product on the pages. */
  name: () => string;
}

interface Asset {
  type: string;
  content: string | Blob;
}

const LOGO_TYPES: Readonly<Record<string, string>> = {
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".webp": "image/webp",
  ".jpg": "image/jpeg",
  ".jpeg": "image/jpeg",
  ".gif": "image/gif",
};

/** The files that the pages load, by names that change with their content. */
export class Assets {
  readonly #files = new Map<string, Asset>();
  readonly style: Style;

  private constructor(
    style: Omit<Style, "sheet" | "script" | "logo">,
    files: { sheet: Asset; script: Asset; logo: (Asset & { hash: string; ending: string }) | null },
  ) {
    const add = (name: string, ending: string, asset: Asset, hash: string): string => {
      const file = `${name}-${hash}${ending}`;
      this.#files.set(file, asset);
      return file;
    };
    const { logo } = files;
    this.style = {
      ...style,
      sheet: add("style", ".css", files.sheet, hashOf(String(files.sheet.content))),
      script: add("script", ".js", files.script, hashOf(String(files.script.content))),
      logo: logo === null ? null : add("logo", logo.ending, logo, logo.hash),
    };
  }

  static async of(config: PagesConfig, name: () => string): Promise<Assets> {
    const rules = config.accent === undefined ? "" : accentRules(config.accent);
    return new Assets(
      { name },
      {
        sheet: { type: "text/css; charset=utf-8", content: sheet + rules },
        script: { type: "text/javascript; charset=utf-8", content: script },
        logo: await logoOf(config),
      },
    );
  }

  /** Returns a file; null: there is none of this name. */
  answer(name: string): Response | null {
    const found = this.#files.get(name);
    if (found === undefined) return null;
    const headers = {
      "content-type": found.type,
      "cache-control": IMMUTABLE,
      // A picture may hold scripts, where it is opened by itself.
      "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    };
    return new Response(found.content, { headers });
  }
}

const HASH_CHARACTERS = 12;
const hashOf = (content: string | Uint8Array<ArrayBuffer>): string =>
  Bun.SHA256.hash(content, "hex").slice(0, HASH_CHARACTERS);

/** Returns the logo of the config, which `platform build` has put into a product. */
async function logoOf({ logo }: PagesConfig): Promise<(Asset & { hash: string; ending: string }) | null> {
  if (logo === undefined) return null;
  const ending = extname(logo).toLowerCase();
  const packed = ownProduct()?.logo ?? null;
  const bytes = packed === null ? await Bun.file(logo).bytes() : new Uint8Array(Buffer.from(packed, "base64"));
  return {
    type: LOGO_TYPES[ending] ?? "application/octet-stream",
    content: new Blob([bytes]),
    hash: hashOf(bytes),
    ending,
  };
}
