type Channels = readonly [red: number, green: number, blue: number];

const WHITE: Channels = [255, 255, 255];
const BLACK: Channels = [0, 0, 0];
/** The backgrounds of the style sheet on which it is harder to read: the page when light, the card when dark. */
const LIGHT: Channels = [243, 244, 247];
const DARK: Channels = [27, 29, 35];
/** The contrast that texts need (WCAG 2, AA). */
const CONTRAST_MIN = 4.5;
const STEPS = 20;

function channelsOf(colour: string): Channels {
  const digits = colour.slice(1);
  const long = digits.length === 3 ? [...digits].map((digit) => digit + digit).join("") : digits;
  const channel = (at: number): number => Number.parseInt(long.slice(at, at + 2), 16);
  return [channel(0), channel(2), channel(4)];
}

function luminance(colour: Channels): number {
  const [red = 0, green = 0, blue = 0] = colour.map((channel) => {
    const share = channel / 255;
    return share <= 0.040_45 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: Channels, other: Channels): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

const textOf = (colour: Channels): string =>
  `#${colour.map((channel) => Math.round(channel).toString(16).padStart(2, "0")).join("")}`;

/** Returns the colour, mixed with as much of `end` as it needs to be read on the background. */
function readable(colour: Channels, background: Channels, end: Channels): Channels {
  for (let step = 0; step < STEPS; step++) {
    const share = step / STEPS;
    const mixed: Channels = [0, 1, 2].map(
      (at) => (colour[at] ?? 0) * (1 - share) + (end[at] ?? 0) * share,
    ) as unknown as Channels; // Three of three.
    if (contrast(mixed, background) >= CONTRAST_MIN) return mixed;
  }
  return end;
}

/** Returns the rules of the style sheet for the colour of a config, readable in light and dark. */
export function accentRules(accent: string): string {
  const light = readable(channelsOf(accent), LIGHT, BLACK);
  const dark = readable(channelsOf(accent), DARK, WHITE);
  const on = (colour: Channels): string => (contrast(colour, WHITE) >= contrast(colour, BLACK) ? "#ffffff" : "#000000");
  const rules = (colour: Channels): string => `:root{--accent:${textOf(colour)};--on-accent:${on(colour)}}`;
  return `${rules(light)}@media (prefers-color-scheme:dark){${rules(dark)}}`;
}
