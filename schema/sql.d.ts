/** SQL files are embedded as text: `import sql from "./001_auth.sql" with { type: "text" }`. */
declare module "*.sql" {
  const text: string;
  export default text;
}
