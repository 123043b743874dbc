import {
  type Icon,
  IconFile,
  IconFileMusic,
  IconFileText,
  IconFileTypePdf,
  IconFileZip,
  IconMovie,
  IconPhoto,
} from "../../parts/icons.tsx";

/** How a file is shown. */
type Kind = "picture" | "film" | "sound" | "pdf" | "text" | "other";

const TEXTS = /^(text\/.*|application\/(.*\+)?(json|xml|yaml|x-yaml|javascript|toml|sql|x-sh|graphql|ld\+json))$/;

/** By the type that it was stored with, which who uploaded it has chosen: nothing here lets a file run. */
export function kindOf(contentType: string): Kind {
  const type = (contentType.split(";")[0] ?? "").trim().toLowerCase();
  if (type.startsWith("image/")) return "picture";
  if (type.startsWith("video/")) return "film";
  if (type.startsWith("audio/")) return "sound";
  if (type === "application/pdf") return "pdf";
  return TEXTS.test(type) ? "text" : "other";
}

const ICONS: Readonly<Record<Kind, Icon>> = {
  picture: IconPhoto,
  film: IconMovie,
  sound: IconFileMusic,
  pdf: IconFileTypePdf,
  text: IconFileText,
  other: IconFile,
};

export const iconOf = (contentType: string): Icon =>
  /zip|tar|compress|7z|rar/.test(contentType) ? IconFileZip : ICONS[kindOf(contentType)];
