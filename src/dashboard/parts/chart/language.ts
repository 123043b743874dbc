/**
 * Overrides an invalid `navigator.language`. uPlot formats by it when it is loaded, and throws for an invalid name: Chromium on a
 * system without a language reports `en-US@posix`.
 */
export function giveLanguage(): void {
  try {
    Intl.getCanonicalLocales(navigator.language);
  } catch {
    Object.defineProperty(navigator, "language", { value: "en", configurable: true });
  }
}
