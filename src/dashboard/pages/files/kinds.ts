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

/** Kind of preview of a file. */
type Kind = "picture" | "film" | "sound" | "pdf" | "text" | "other";

const TEXTS = /^(text\/.*|application\/(.*\+)?(json|xml|yaml|x-yaml|javascript|toml|sql|x-sh|graphql|ld\+json))$/;

/** Returns the kind by the stored type. The uploader chose that type, so no kind may execute a file. */
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
