/** The application that `platform build` adds to an executable, with all that it needs. */
export interface Product {
  readonly name: string;
  readonly version: string;
  /** Evaluates the config, and resolves with the module: secrets are read from the environment at this time. */
  loadConfig(): Promise<unknown>;
  /** The names of the environment variables that the config reads. */
  readonly variables: readonly string[];
  /** The files of the config's site; null without a site. */
  readonly site: PackedSite | null;
  /** The logo of the pages for signing in, in base64; null without one. */
  readonly logo: string | null;
}

/** A file that contains the files of a site, one after another. */
export interface PackedSite {
  readonly file: string;
  /** The time of packing. */
  readonly modifiedMs: number;
  /** The files by their paths below the site's directory. */
  readonly files: Readonly<Record<string, PackedFile>>;
}

export interface PackedFile {
  readonly start: number;
  readonly size: number;
  readonly hash: string;
  readonly contentType: string;
}

/** The global symbol under which a built executable passes the product to the program, and the program its modules to the config. */
export const PRODUCT = Symbol.for("platform.product");
export const MODULES = Symbol.for("platform.modules");

const shared = globalThis as { [PRODUCT]?: Product; [MODULES]?: ProvidedModules };

/** Modules of the running program that a config imports, by name. */
export type ProvidedModules = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Returns the product in this executable; null in the platform's own. */
export const ownProduct = (): Product | null => shared[PRODUCT] ?? null;

export function provideToProduct(modules: ProvidedModules): void {
  shared[MODULES] = modules;
}
