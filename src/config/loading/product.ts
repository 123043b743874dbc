/** What `platform build` adds to an executable: one application with all that it needs. */
export interface Product {
  readonly name: string;
  readonly version: string;
  /** Evaluates the config, and resolves with the module: secrets are read from the environment at this time. */
  loadConfig(): Promise<unknown>;
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
