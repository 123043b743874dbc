// HTML of mails as mail programs show it: tables and inline styles, as Outlook needs them, no images, nothing from elsewhere. Gmail and
// Outlook drop what they do not know, and `color-scheme` with the media query is what dark mode takes.

const FONT = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif";
const PARAGRAPH = `margin:0 0 16px;${FONT};font-size:16px;line-height:24px;color:#1f2328`;
const STYLE = [
  ".page,.page td.outer{background:#f3f4f6}",
  "@media (prefers-color-scheme:dark){",
  ".page,.page td.outer{background:#15181c!important}",
  ".card{background:#1f2429!important}",
  ".card p,.card span{color:#e6e8ea!important}",
  ".card p a{color:#8ab4ff!important}",
  ".button td{background:#e6e8ea!important}",
  ".button a{color:#15181c!important}",
  "}",
].join("");

/** A paragraph of a text, its values escaped. */
export type Block =
  | { kind: "text"; html: string }
  /** A line with the link alone. `label`: null for the link itself. */
  | { kind: "link"; href: string; label: string | null }
  /** A line with the code alone. */
  | { kind: "code"; code: string };

/** Returns a mail as HTML. What is in the blocks, `subject` and `language` has been escaped. */
export function layOut({
  subject,
  language,
  blocks,
}: {
  subject: string;
  language: string;
  blocks: readonly Block[];
}): string {
  const head = `<head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark"><meta name="supported-color-schemes" content="light dark"><title>${subject}</title><style>:root{color-scheme:light dark}${STYLE}</style></head>`;
  const card = `<table role="presentation" class="card" width="520" cellpadding="0" cellspacing="0" border="0" bgcolor="#ffffff" style="width:100%;max-width:520px;background:#ffffff;border-radius:8px"><tr><td style="padding:32px 32px 16px;text-align:start">${blocks.map(blockOf).join("")}</td></tr></table>`;
  return `<!doctype html><html lang="${language}" dir="auto">${head}<body class="page" style="margin:0;padding:0;background:#f3f4f6"><table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" bgcolor="#f3f4f6"><tr><td class="outer" align="center" style="padding:32px 12px">${card}</td></tr></table></body></html>\n`;
}

function blockOf(block: Block): string {
  switch (block.kind) {
    case "text":
      return `<p style="${PARAGRAPH}">${block.html}</p>`;
    case "code":
      return `<p style="${PARAGRAPH};font-size:32px;line-height:40px;font-weight:700;letter-spacing:6px">${block.code}</p>`;
    case "link": {
      const { href, label } = block;
      if (label === null) return `<p style="${PARAGRAPH};word-break:break-all">${anchor(href)}</p>`;
      const button = `<table role="presentation" class="button" cellpadding="0" cellspacing="0" border="0" style="margin:0 0 16px"><tr><td bgcolor="#1f2328" style="background:#1f2328;border-radius:6px"><a href="${href}" style="display:inline-block;padding:12px 20px;${FONT};font-size:16px;font-weight:600;color:#ffffff;text-decoration:none">${label}</a></td></tr></table>`;
      return `${button}<p style="${PARAGRAPH};font-size:13px;line-height:18px;word-break:break-all">${anchor(href)}</p>`;
    }
  }
}

/** Returns a link that shows where it leads. */
export const anchor = (href: string): string => `<a href="${href}" style="color:#1a56db">${href}</a>`;
