import type { PageTexts } from "../../../../config/sections/page-texts.ts";
import { ENGLISH } from "./english.ts";
import { GERMAN } from "./german.ts";

/** The texts of one language, and its tag. */
export interface Language {
  tag: string;
  texts: PageTexts;
}

const LANGUAGES_READ_MAX = 20;

/** Returns how to find the language of a request among English, German and those of the config, which may replace them. */
export function languageChooser(
  added: Readonly<Record<string, PageTexts>> = {},
): (accepted: string | null) => Language {
  const known = Object.entries({ en: ENGLISH, de: GERMAN, ...added }).map(([tag, texts]) => ({ tag, texts }));
  const named = (tag: string) => known.find((language) => language.tag.toLowerCase() === tag);
  const related = (tag: string) => {
    const [base = ""] = tag.split("-");
    return named(base) ?? known.find((language) => language.tag.toLowerCase().startsWith(`${base}-`));
  };
  const first: Language = { tag: "en", texts: named("en")?.texts ?? ENGLISH };
  return (accepted) => {
    for (const tag of tagsOf(accepted ?? "")) {
      const found = named(tag) ?? related(tag);
      if (found !== undefined) return found;
    }
    return first;
  };
}

/** Lists the accepted languages in lower case, the preferred one first. */
function tagsOf(accepted: string): string[] {
  const weighed = accepted
    .slice(0, 1_000)
    .split(",")
    .slice(0, LANGUAGES_READ_MAX)
    .map((entry) => {
      const [tag = "", ...parameters] = entry.split(";").map((part) => part.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
      return { tag, weight: weight === undefined ? 1 : Number(weight) || 0 };
    });
  return weighed
    .filter(({ tag, weight }) => weight > 0 && /^[a-z]/.test(tag))
    .sort((one, other) => other.weight - one.weight)
    .map(({ tag }) => tag);
}

/** Fills the braces of a text in. */
export const filled = (text: string, values: Readonly<Record<string, string | number>>): string =>
  text.replace(/\{(\w+)\}/g, (brace, name: string) => String(values[name] ?? brace));
