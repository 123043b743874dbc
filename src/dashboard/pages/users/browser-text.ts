/** What browsers name beside their own name comes later. */
const PROGRAMS: readonly (readonly [token: string, name: string])[] = [
  ["Edg", "Edge"],
  ["OPR", "Opera"],
  ["Firefox", "Firefox"],
  ["Chrome", "Chrome"],
  ["Safari", "Safari"],
];
const SYSTEMS = ["Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux"];

/** `Firefox 140, Linux`; a User-Agent of no known browser as it is. */
export function browserText(userAgent: string): string {
  const program = PROGRAMS.find(([token]) => userAgent.includes(`${token}/`));
  if (program === undefined) return userAgent;
  const [token, name] = program;
  const version = userAgent.split(`${token}/`)[1]?.match(/^\d+/)?.[0];
  const system = SYSTEMS.find((one) => userAgent.includes(one));
  return [version === undefined ? name : `${name} ${version}`, system].filter((part) => part !== undefined).join(", ");
}
