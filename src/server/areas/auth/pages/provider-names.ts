/** Names that are written otherwise than with one capital. */
const NAMES: Readonly<Record<string, string>> = {
  github: "GitHub",
  gitlab: "GitLab",
  linkedin: "LinkedIn",
  tiktok: "TikTok",
  line: "LINE",
  vk: "VK",
};

export const providerName = (name: string): string => NAMES[name] ?? name.slice(0, 1).toUpperCase() + name.slice(1);
