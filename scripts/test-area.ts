// `npm run test:area tables`: the tests of one area, beside its code and outside. Further arguments go to `bun test`.

const [area = "", ...more] = process.argv.slice(2);
const patterns = [
  `src/server/{areas/,}${area}/**/*.test.ts`,
  `src/${area}/**/*.test.ts`,
  `tests/{http,ws}/${area}/**/*.test.ts`,
  `tests/${area}/**/*.test.ts`,
];
const files = area === "" ? [] : patterns.flatMap((pattern) => [...new Bun.Glob(pattern).scanSync()]).sort();
if (files.length === 0) {
  console.error(
    `There are no tests of "${area}": name a folder of src, src/server, src/server/areas, tests or tests/http.`,
  );
  process.exit(2);
}
const child = Bun.spawn(["bun", "test", "--timeout", "60000", ...files.map((file) => `./${file}`), ...more], {
  stdio: ["inherit", "inherit", "inherit"],
});
process.exit(await child.exited);
