import type { Guide } from "./source.ts";

/** Name of the list for language models, below the guide's path. */
export const LLMS_NAME = "llms.txt";
const NOTES = "agents.md";
const LIST = "README.md";

/** Returns the notes for assistants, as `platform init --agents` writes them too, and the list of all pages. */
export function llmsText(guide: Guide, base: string): string {
  const listed = [...(guide.get(LIST) ?? "").matchAll(/^\| \[([^\]]+)\]\(([\w./-]+\.md)\) \| (.*) \|$/gm)];
  const about = new Map(listed.map(([, title = "", name = "", text = ""]) => [name, { title, text: plain(text) }]));
  const lines = [...guide.entries()]
    .filter(([name]) => name !== NOTES && name !== LIST)
    .map(([name, page]) => {
      const { title, text } = about.get(name) ?? { title: /^# (.+)$/m.exec(page)?.[1] ?? name, text: "" };
      return `- [${title}](${base}/${name})${text === "" ? "" : `: ${text}`}`;
    });
  return `${(guide.get(NOTES) ?? "").trimEnd()}\n\n## Pages\n\nEach of them is Markdown.\n\n${lines.join("\n")}\n`;
}

/** Returns a text without the links in it. */
const plain = (text: string): string => text.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1");
