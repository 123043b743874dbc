/** What `platform build` adds to an executable: one application with all that it needs. */
export interface Product {
  readonly name: string;
  readonly version: string;
  /** Evaluates the config, and resolves with the module: secrets are read from the environment at this time. */
  loadConfig(): Promise<unknown>;
  /** Names of the variables of the environment that the config reads. */
  readonly variables: readonly string[];
  /** The files of the config's site; null without a site. */
  readonly site: PackedSite | null;
}

/** Files one after another in one file. */
export interface PackedSite {
  readonly file: string;
  /** When it was packed. */
  readonly modifiedMs: number;
  /** By their paths below the site's directory. */
  readonly files: Readonly<Record<string, PackedFile>>;
}

export interface PackedFile {
  readonly start: number;
  readonly size: number;
  readonly hash: string;
  readonly contentType: string;
}

/** Where the entry of a built executable leaves the product for the program, and the program its modules for the config. */
export const PRODUCT = Symbol.for("platform.product");
export const MODULES = Symbol.for("platform.modules");

const shared = globalThis as { [PRODUCT]?: Product; [MODULES]?: ProvidedModules };

/** Modules that a config imports by name and that are the running program's own, by that name. */
export type ProvidedModules = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** The product in this executable; null in the platform's own. */
export const ownProduct = (): Product | null => shared[PRODUCT] ?? null;

export function provideToProduct(modules: ProvidedModules): void {
  shared[MODULES] = modules;
}
