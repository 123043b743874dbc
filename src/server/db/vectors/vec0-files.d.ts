/** Library files that a build embeds into the executable; the import is their path. */
declare module "*/vec0.so" {
  const path: string;
  export default path;
}
declare module "*/vec0.dylib" {
  const path: string;
  export default path;
}
declare module "*/vec0.dll" {
  const path: string;
  export default path;
}
