import type { Encoding } from "./pack.ts";

/** Whether `Accept-Encoding` names the encoding with a weight other than 0. `*` alone names none: few clients mean it. */
export function acceptsEncoding(header: string | null, encoding: Encoding): boolean {
  if (header === null || !header.includes(encoding)) return false;
  return header.split(",").some((part) => {
    const [name = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    return name === encoding && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
  });
}
