import { afterAll, beforeAll, expect } from "bun:test";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { testBrowser } from "../support/browser.ts";
import { expectGoodPages, openDashboard } from "../support/dashboard.ts";
import { SERVICE_KEY, signIn, type TestPlatform, testPlatform, until } from "../support/index.ts";

const READER = "reader-key-0123456789abcdefghijklmnopqrstuv";
const CONFIG = `{
  storage: { buckets: {
    posters: { thumbs: ["200x200"], quota: { total: 60_000_000 }, access: { read: true, write: true, delete: true } },
    own: { access: { read: (auth, file) => file.uploadedBy === auth?.id, write: true, delete: (auth, file) => file.key !== "kept.txt" && file.uploadedBy === auth?.id } },
    open: { inline: true, access: { read: true } },
    trusted: { inline: "sameOrigin", access: { read: true } },
    empty: { access: { read: true } },
  } },
  serviceKeys: {
    reader: { key: "${READER}", scopes: ["storage:bucket:posters:read"] },
    elsewhere: { key: "elsewhere-${READER}", scopes: ["auth:admin:*:read"] },
  },
}`;
const MANY = 230;
/** Timeout of tests that open many pages. */
const LONG_MS = 200_000;
const GIF = Uint8Array.from(atob("R0lGODlhAQABAIAAAP8AAP///yH5BAAAAAAALAAAAAABAAEAAAICRAEAOw=="), (c) =>
  c.charCodeAt(0),
);

let platform: TestPlatform;
const browser = testBrowser();
const { browserTest } = browser;
const signedIn = (path: string, key = SERVICE_KEY) => openDashboard(browser, platform, path, { key });

async function put(bucket: string, key: string, content: BlobPart, type = "text/plain", client = platform.service) {
  const form = new FormData();
  form.append("key", key);
  form.append("file", new Blob([content], { type }), "file");
  const { status } = await client.fetch(`/api/storage/${bucket}/upload`, { method: "POST", body: form });
  expect(status).toBe(201);
}

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  await put("posters", "films/42/poster.gif", GIF, "image/gif");
  await put("posters", "films/notes.txt", "Notes of a film");
  await put("posters", "readme.txt", "x".repeat(100_000));
  await put("posters", "empty.txt", "");
  for (let n = 0; n < MANY; n++) await put("posters", `many/${String(n).padStart(4, "0")}.txt`, "x");
});
afterAll(() => platform.stop());

const file = (page: Page, name: string) => page.getByRole("link", { name, exact: true });
const keysOf = async (bucket: string, prefix = ""): Promise<string[]> => {
  const answer = await platform.service.get<{ objects: { key: string }[] }>(`/api/storage/${bucket}`, {
    query: { prefix },
  });
  return answer.body.objects.map(({ key }) => key);
};

browserTest("[AD33] buckets, folders and files are found by clicks, and the address holds it all", async () => {
  const { page, problems } = await signedIn("/admin");
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Files" }).click();
  await page.getByRole("heading", { level: 1, name: "Files" }).waitFor();
  expect(await page.title()).toBe("Files");
  await file(page, "films").click();
  await file(page, "42").click();
  await file(page, "poster.gif").waitFor();
  await page.getByRole("navigation", { name: "Folders" }).getByRole("link", { name: "films" }).click();
  await file(page, "notes.txt").click();
  await page.getByRole("dialog").getByText("Notes of a film").waitFor();
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.getByRole("dialog").getByText("Notes of a film").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("textbox", { name: "Search" }).fill("no");
  await page.getByRole("textbox", { name: "Search" }).fill("nothing begins so");
  await page.getByText("No name begins so").waitFor();
  await page.getByRole("combobox", { name: "Bucket" }).click();
  await page.getByRole("option", { name: "empty" }).click();
  await page.getByText("Drop files here, or press Upload.").waitFor();
  expect(problems).toEqual([]);
});

browserTest("[AD33] the search finds files by the beginning of their keys", async () => {
  const { page } = await signedIn("/admin/users");
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.keyboard.press("/");
  await page.getByRole("dialog").getByRole("textbox", { name: "Search" }).fill("films/42/");
  await page.getByRole("dialog").getByText("posters/films/42/poster.gif").waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Files" }).waitFor();
  await page.getByRole("dialog").getByRole("heading", { name: "poster.gif" }).waitFor();
  expect(page.url()).toContain("prefix=films%2F42%2F");
});

browserTest(
  "[AD33] a folder of any size is scrolled: its next files are loaded, and those on the screen exist",
  async () => {
    const { page, problems } = await signedIn("/admin/files?bucket=posters&prefix=many%2F");
    const table = page.getByRole("table", { name: "Files" });
    await file(page, "0000.txt").waitFor();
    const toEnd = () => page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
    await until("the last file is there", async () => {
      await toEnd();
      return (await file(page, "0229.txt").count()) === 1;
    });
    expect(await table.getAttribute("aria-rowcount")).toBe(String(MANY + 1));
    expect(await table.getByRole("link").count()).toBeLessThan(80);
    expect(await file(page, "0000.txt").count()).toBe(0);
    expect(await table.getByRole("row").last().getAttribute("aria-rowindex")).toBe(String(MANY + 1));
    await page.evaluate("scrollTo(0, 0)");
    await file(page, "0000.txt").waitFor();
    await page.getByRole("button", { name: "As pictures" }).click();
    await until("the last file is there as a picture", async () => {
      await toEnd();
      return (await page.getByRole("link", { name: /0229.txt/ }).count()) === 1;
    });
    expect(await page.locator("li a").count()).toBeLessThan(MANY);
    expect(problems).toEqual([]);
  },
);

browserTest("[AD34] pictures, films, sounds and texts are shown; of a long text the beginning", async () => {
  await put("posters", "film.mp4", "not a film", "video/mp4");
  await put("posters", "song.mp3", "not a song", "audio/mpeg");
  const { page } = await signedIn("/admin/files?bucket=posters&prefix=films%2F42%2F&layout=pictures");
  const loaded = (selector: string) =>
    until(`${selector} is loaded`, () =>
      page.evaluate<boolean>(`(document.querySelector(${JSON.stringify(selector)})?.naturalWidth ?? 0) > 0`),
    );
  await loaded("li img");
  expect(await page.locator("li img").getAttribute("src")).toContain("thumb=200x200");
  await page.getByRole("link", { name: /poster.gif/ }).click();
  await loaded('[role="dialog"] img');
  const open = (key: string) => page.goto(`${platform.url}/admin/files?bucket=posters&file=${key}`);
  await open("readme.txt");
  await page.getByText("The first 65.5 kB of 100 kB.").waitFor();
  await open("empty.txt");
  await page.getByText("The file is empty.").waitFor();
  for (const key of ["film.mp4", "song.mp3"]) {
    await open(key);
    // These are none, and the page says so.
    await page.getByText(/cannot play files of the type/).waitFor();
  }
  await open("nothing.txt");
  await page.getByText("There is no such file").waitFor();
});

browserTest("[AD34] a film is asked for in parts, and a PDF is a blob of that type", async () => {
  const [film, pdf] = ["x".repeat(300_000), "%PDF-1.4 not much of one"];
  await put("posters", "shown/film.mp4", film, "video/mp4");
  await put("posters", "shown/page.pdf", pdf, "application/pdf");
  const { page } = await signedIn("/admin/files?bucket=empty");
  const asked = page.waitForResponse((answer) => answer.request().resourceType() === "media");
  await page.goto(`${platform.url}/admin/files?bucket=posters&prefix=shown%2F&file=shown%2Ffilm.mp4`);
  const answer = await asked;
  expect(answer.status()).toBe(206);
  expect(answer.request().headers()["range"]).toBe("bytes=0-");
  expect(answer.headers()).toMatchObject({
    "content-type": "video/mp4",
    "content-range": `bytes 0-${film.length - 1}/${film.length}`,
    "content-disposition": "inline",
  });
  // Where somebody jumps to.
  const part = await fetch(answer.url(), { headers: { range: "bytes=200000-200009" } });
  expect([part.status, part.headers.get("content-range"), (await part.text()).length]).toEqual([
    206,
    `bytes 200000-200009/${film.length}`,
    10,
  ]);
  // Chromium for tests has no viewer of PDFs.
  await page.addInitScript(`
    Object.defineProperty(navigator, "pdfViewerEnabled", { value: true });
    const make = URL.createObjectURL;
    URL.createObjectURL = (blob) => make.call(URL, (window.shown = blob));
  `);
  await page.goto(`${platform.url}/admin/files?bucket=posters&prefix=shown%2F&file=shown%2Fpage.pdf`);
  const frame = page.getByRole("dialog").locator("iframe[title='page.pdf']");
  await frame.waitFor();
  expect(await frame.getAttribute("src")).toStartWith(`blob:${platform.url}/`);
  expect(await page.evaluate<string[]>("shown.text().then((text) => [shown.type, text])")).toEqual([
    "application/pdf",
    pdf,
  ]);
});

browserTest(
  "[AD35] files of attackers run nothing in the dashboard, and no name pretends to be another",
  async () => {
    const script =
      'try { parent.ran = true; top.ran = true; } catch {} window.ran = true; fetch("/api/admin/session");';
    const html = `<!doctype html><script>${script}</script><img src=x onerror="${script.replaceAll('"', "'")}">`;
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="window.ran = true"><script>${script}</script></svg>`;
    const names = [
      "<img src=x onerror=ran=1>.html",
      "javascript:ran=1",
      "a & b ' \" ?x=1#y.html",
      "\u202egnp.exe",
      "%2e%2e%2f.html",
    ];
    for (const bucket of ["posters", "open"]) {
      for (const name of names) await put(bucket, `evil/${name}`, html, "text/html");
      await put(bucket, "evil/picture.svg", svg, "image/svg+xml");
      await put(bucket, "evil/page.pdf", html, "application/pdf");
      await put(bucket, "evil/as-picture.gif", html, "image/gif");
      await put(bucket, "evil/film.mp4", html, "video/mp4");
      await put(bucket, "evil/page.xhtml", html, "application/xhtml+xml");
    }
    for (const bucket of ["posters", "open"]) {
      const { page, context } = await signedIn("/admin/files?bucket=empty");
      const opened: string[] = [];
      context.on("page", (other) => opened.push(other.url()));
      // Chromium for tests has no viewer of PDFs: it is enough that the frame has a blob of that type.
      await page.addInitScript("Object.defineProperty(navigator, 'pdfViewerEnabled', { value: true })");
      await page.goto(`${platform.url}/admin/files?bucket=${bucket}&prefix=evil%2F&layout=pictures`);
      const files = page.locator("li a");
      await files.first().waitFor();
      const names = await files.allTextContents();
      expect(names.some((name) => name.startsWith("\ufffdgnp.exe"))).toBe(true);
      for (const [index, name] of names.entries()) {
        await files.nth(index).click();
        const link = page.getByRole("dialog").getByRole("link", { name: "Download" });
        await link.waitFor();
        await page.waitForLoadState("networkidle");
        expect({ name, ran: await page.evaluate("window.ran ?? null") }).toEqual({ name, ran: null });
        expect(page.url()).toContain("/admin/files");
        // It is saved, not opened, also where the bucket shows every type.
        expect(await link.getAttribute("download")).not.toBeNull();
        const frames = page.locator("iframe");
        if (name.startsWith("page.pdf")) await frames.first().waitFor();
        expect({ name, frames: await frames.count() }).toEqual({ name, frames: name.startsWith("page.pdf") ? 1 : 0 });
        for (const frame of await frames.all()) expect(await frame.getAttribute("src")).toStartWith("blob:");
        await page.keyboard.press("Escape");
        await link.waitFor({ state: "detached" });
      }
      expect(opened).toEqual([]);
    }
  },
  LONG_MS,
);

browserTest(
  "[ST23] a file that an administrator opens from a bucket with inline has nothing of the dashboard",
  async () => {
    const script = `
    const ask = (about) => fetch("/api/admin/session", { credentials: "include", ...about }).then((answer) => answer.status, () => "refused");
    const kept = () => { try { return localStorage.length + document.cookie } catch { return "none" } };
    const all = [ask({ headers: { "x-platform-admin": "1" } }), ask({}), kept(), self.origin];
    Promise.all(all).then((found) => { document.documentElement.id = found.join(" ") });
  `;
    const files = {
      "a.html": ["text/html", `<script>${script}</script>`],
      "a.xhtml": [
        "application/xhtml+xml",
        `<html xmlns="http://www.w3.org/1999/xhtml"><script>${script.replaceAll("=>", "=&gt;")}</script></html>`,
      ],
      "a.svg": [
        "image/svg+xml",
        `<svg xmlns="http://www.w3.org/2000/svg"><script>${script.replaceAll("=>", "=&gt;")}</script></svg>`,
      ],
    } as const;
    const { page } = await signedIn("/admin/files?bucket=empty");
    await page.getByRole("heading", { level: 1 }).waitFor();
    const seenBy = async (bucket: string, name: string, [type, content]: readonly [string, string]) => {
      await put(bucket, name, content, type);
      await page.goto(`${platform.url}/api/storage/${bucket}/${name}`);
      const found = () => page.evaluate<string>("document.documentElement.id");
      await until("the script has run", async () => (await found()) !== "");
      return found();
    };
    for (const [name, file] of Object.entries(files)) {
      expect([name, await seenBy("open", name, file)]).toEqual([name, "refused refused none null"]);
      // What the sandbox keeps it from.
      expect([name, await seenBy("trusted", name, file)]).toEqual([name, `200 401 0 ${platform.url}`]);
    }
  },
);

browserTest("[AD36] files are uploaded by the button and by dropping, with progress; replacing asks", async () => {
  const { page } = await signedIn("/admin/files?bucket=posters&prefix=new%2F");
  await page.getByText("No files in new").waitFor();
  const choose = async (names: readonly string[], content = "hello") => {
    const chooser = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Upload", exact: true }).click();
    await (await chooser).setFiles(
      names.map((name) => ({ name, mimeType: "text/plain", buffer: Buffer.from(content) })),
    );
  };
  await choose(["a.txt", "b & c?.txt"]);
  await page.getByText("2 of 2 uploaded").waitFor();
  await file(page, "b & c?.txt").waitFor();
  expect(await keysOf("posters", "new/")).toEqual(["new/a.txt", "new/b & c?.txt"]);
  await choose(["a.txt", "d.txt"], "changed");
  await page.getByText("a.txt is there already.").waitFor();
  await page.getByRole("button", { name: "Upload the others" }).click();
  await file(page, "d.txt").waitFor();
  expect(await (await platform.fetch("/api/storage/posters/new/a.txt")).text()).toBe("hello");
  await choose(["a.txt"], "changed");
  await page.getByRole("button", { name: "Replace" }).click();
  await until("it is replaced", async () => {
    return (await (await platform.fetch("/api/storage/posters/new/a.txt")).text()) === "changed";
  });
  // Larger than one request: in parts.
  const transfer = await page.evaluateHandle(`(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([new Uint8Array(9 * 1024 * 1024)], "large.bin"));
    return transfer;
  })()`);
  await page.dispatchEvent(".files-drop", "dragover", { dataTransfer: transfer });
  await page.getByText("Drop to upload to new/").waitFor();
  await page.dispatchEvent(".files-drop", "drop", { dataTransfer: transfer });
  await file(page, "large.bin").waitFor();
  expect(await page.getByRole("progressbar", { name: "Progress of new/large.bin" }).getAttribute("aria-valuenow")).toBe(
    "100",
  );
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByRole("region", { name: "Uploads" }).waitFor({ state: "detached" });
});

browserTest("[AD36] what becomes of files that are dropped far down in a folder is in sight", async () => {
  const { page } = await signedIn("/admin/files?bucket=posters&prefix=many%2F");
  await file(page, "0000.txt").waitFor();
  await page.mouse.move(700, 500);
  await page.mouse.wheel(0, 3_000);
  await until("it is scrolled", async () => (await page.evaluate<number>("scrollY")) > 1_000);
  const transfer = await page.evaluateHandle(`(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["x"], "zz-dropped.txt"));
    return transfer;
  })()`);
  await page.dispatchEvent(".files-drop", "drop", { dataTransfer: transfer });
  const uploads = page.getByRole("region", { name: "Uploads" });
  await uploads.getByText("1 of 1 uploaded").waitFor();
  const box = await uploads.boundingBox();
  expect(box?.y ?? -1).toBeGreaterThanOrEqual(0);
  expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThan(720);
  await platform.service.delete("/api/storage/posters/many/zz-dropped.txt");
});

browserTest("[AD36] [TC322] an upload in parts goes on after a reload, as whoever began it", async () => {
  const ann = await signIn(platform);
  const path = join(platform.dataDirectory, "long.bin");
  await Bun.write(path, new Uint8Array(12 * 1024 * 1024));
  const address = `/admin/files?bucket=own&as=${ann.id}`;
  const { page } = await signedIn(address);
  let partCount = 0;
  let isOpen = false;
  await page.route("**/multipart/upload-part?*", async (route) => {
    partCount++;
    if (isOpen || partCount === 1) await route.continue();
  });
  const choose = async () => {
    const chooser = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Upload", exact: true }).click();
    await (await chooser).setFiles(path);
  };
  await choose();
  const unfinished = async () =>
    (await platform.service.get<{ uploads: { parts: number; ownerId: string }[] }>("/api/admin/storage/own/uploads"))
      .body.uploads;
  await until("a part is there", async () => (await unfinished())[0]?.parts === 1);
  expect((await unfinished())[0]?.ownerId).toBe(ann.id);
  page.on("dialog", (dialog) => void dialog.accept());
  await page.goto(platform.url + address);
  isOpen = true;
  partCount = 0;
  await choose();
  await file(page, "long.bin").waitFor();
  expect(partCount).toBe(2);
  expect(await unfinished()).toEqual([]);
  const kept = await page.evaluate("JSON.stringify(localStorage)");
  expect(kept).not.toContain("platform.uploads");
});

browserTest("[AD36] what the server refuses of an upload is said, and can be tried again", async () => {
  const { page } = await signedIn("/admin/files?bucket=posters");
  await page.route("**/api/storage/posters/upload", (route) =>
    route.fulfill({ status: 413, json: { code: 413, message: "The bucket is full", data: {} } }),
  );
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Upload", exact: true }).click();
  await (await chooser).setFiles([{ name: "refused.txt", mimeType: "text/plain", buffer: Buffer.from("x") }]);
  const uploads = page.getByRole("region", { name: "Uploads" });
  await uploads.getByText("The bucket is full").waitFor();
  await page.unroute("**/api/storage/posters/upload");
  await uploads.getByRole("button", { name: "Retry" }).click();
  await file(page, "refused.txt").waitFor();
});

browserTest(
  "[AD36] nothing is uploaded where it cannot be asked which files are there, or of more than 1,000 dropped ones",
  async () => {
    await put("posters", "asked/a.txt", "hello");
    const { page } = await signedIn("/admin/files?bucket=posters&prefix=asked%2F");
    await file(page, "a.txt").waitFor();
    await page.route("**/api/storage/posters/signed-urls", (route) =>
      route.fulfill({ status: 409, json: { code: 409, message: "Ask again later", data: {} } }),
    );
    const chooser = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Upload", exact: true }).click();
    await (await chooser).setFiles([{ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("changed") }]);
    await page.getByText("Ask again later").waitFor();
    await page.unroute("**/api/storage/posters/signed-urls");
    // A folder as the browser gives it.
    await page.evaluate(`(() => {
    const entry = (n) => ({ isFile: true, file: (resolve) => resolve(new File(["x"], n + ".txt")) });
    const batches = [Array.from({ length: 1001 }, (_, n) => entry(n))];
    const folder = { name: "many", isFile: false, createReader: () => ({ readEntries: (resolve) => resolve(batches.pop() ?? []) }) };
    const items = [{ webkitGetAsEntry: () => folder, getAsFile: () => null }];
    const drop = new DragEvent("drop", { bubbles: true });
    Object.defineProperty(drop, "dataTransfer", { value: { items, types: ["Files"] } });
    document.querySelector(".files-drop").dispatchEvent(drop);
  })()`);
    await page.getByText("More than 1,000 files are too many at once").waitFor();
    expect(await keysOf("posters", "asked/")).toEqual(["asked/a.txt"]);
    expect(await (await platform.fetch("/api/storage/posters/asked/a.txt")).text()).toBe("hello");
  },
);

browserTest("[AD38] what is chosen is not deleted with what a search shows", async () => {
  for (const key of ["a.txt", "b.txt"]) await put("posters", `sought/${key}`, "x");
  const { page } = await signedIn("/admin/files?bucket=posters&prefix=sought%2F");
  await page.getByRole("checkbox", { name: "Choose a.txt" }).check();
  await page.getByText("One file chosen").waitFor();
  await page.getByRole("textbox", { name: "Search", exact: true }).fill("b");
  await file(page, "a.txt").waitFor({ state: "detached" });
  expect(await page.getByRole("region", { name: "Chosen files" }).count()).toBe(0);
  await page.getByRole("checkbox", { name: "Choose b.txt" }).check();
  await page.getByText("One file chosen").waitFor();
});

browserTest("[AD37] metadata is edited, and a signed link is good for everybody", async () => {
  const { page } = await signedIn("/admin/files?bucket=posters&prefix=films%2F&file=films%2Fnotes.txt");
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Add" }).click();
  await dialog.getByRole("textbox", { name: "Name", exact: true }).fill("author");
  await dialog.getByRole("textbox", { name: "Value of author" }).fill("Ann");
  await dialog.getByRole("button", { name: "Save" }).click();
  const metadata = async () =>
    (await platform.service.get("/api/storage/posters/films/notes.txt/metadata")).body["customMetadata"];
  await dialog.getByRole("button", { name: "Save" }).waitFor({ state: "detached" });
  expect(await metadata()).toEqual({ author: "Ann" });
  await dialog.getByRole("textbox", { name: "Value of author" }).fill("Bob");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  expect(await dialog.getByRole("textbox", { name: "Value of author" }).inputValue()).toBe("Ann");
  await dialog.getByRole("button", { name: "Remove author" }).click();
  await dialog.getByRole("button", { name: "Save" }).click();
  await until("it is gone", async () => JSON.stringify(await metadata()) === "{}");
  await dialog.getByRole("button", { name: "Copy link" }).click();
  const link = await dialog.getByRole("textbox", { name: "Signed link" }).inputValue();
  expect(await (await fetch(link)).text()).toBe("Notes of a film");
});

browserTest("[AD38] deleted files are hidden, and deleted after ten seconds unless that is undone", async () => {
  for (const key of ["1.txt", "2.txt", "3.txt"]) await put("posters", `gone/${key}`, "x");
  const { page } = await signedIn("/admin/files?bucket=posters&prefix=gone%2F");
  const remove = async () => {
    await page.getByRole("checkbox", { name: "Choose 1.txt" }).check();
    await page.getByRole("checkbox", { name: "Choose 2.txt" }).check();
    await page.getByRole("region", { name: "Chosen files" }).getByRole("button", { name: "Delete" }).click();
    await page.getByText("2 files deleted").waitFor();
    await file(page, "1.txt").waitFor({ state: "detached" });
  };
  await remove();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("2 files deleted").waitFor({ state: "detached" });
  await file(page, "1.txt").waitFor();
  expect(await keysOf("posters", "gone/")).toHaveLength(3);
  await remove();
  // Leaving the page does not lose it.
  await page.goto(`${platform.url}/admin/files?bucket=posters&prefix=gone%2F&file=gone%2F3.txt`);
  await until("they are deleted", async () => (await keysOf("posters", "gone/")).length === 1);
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("One file deleted").waitFor();
  expect(await keysOf("posters", "gone/")).toHaveLength(1);
});

browserTest("[AD39] unfinished uploads are listed and aborted, and the quota shows what is used", async () => {
  const { body } = await platform.service.post<{ uploadId: string }>("/api/storage/posters/multipart/create", {
    key: "huge.mkv",
  });
  await platform.service.fetch(
    `/api/storage/posters/multipart/upload-part?uploadId=${body.uploadId}&key=huge.mkv&partNumber=1`,
    { method: "POST", body: "x".repeat(2000) },
  );
  const { page } = await signedIn("/admin/files?bucket=posters");
  await page.getByText(/of 60.0 MB used/).waitFor();
  await page.getByRole("button", { name: "Unfinished uploads" }).click();
  const one = page.getByRole("dialog").getByRole("group", { name: "huge.mkv" });
  await one.getByText(/2.00 kB in 1 part/).waitFor();
  await one.getByRole("button", { name: "Abort" }).click();
  await page.getByText("No unfinished uploads").waitFor();
});

browserTest("[AD33] [AD25] View as shows the files that a user may read, and their rules decide", async () => {
  const [ann, bob] = [await signIn(platform), await signIn(platform)];
  await put("own", "of-ann.txt", "x", "text/plain", ann);
  await put("own", "kept.txt", "x", "text/plain", ann);
  await put("own", "of-bob.txt", "x", "text/plain", bob);
  const { page } = await signedIn("/admin/files?bucket=own");
  await file(page, "of-bob.txt").waitFor();
  await page.goto(`${platform.url}/admin/files?bucket=own&as=${ann.id}`);
  await file(page, "of-ann.txt").waitFor();
  expect(await file(page, "of-bob.txt").count()).toBe(0);
  // What ann may not delete, who views as her does not delete either, and hears why.
  await page.getByRole("checkbox", { name: "Choose kept.txt" }).check();
  await page.getByRole("region", { name: "Chosen files" }).getByRole("button", { name: "Delete" }).click();
  await page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide'))");
  await page.goto(`${platform.url}/admin/files?bucket=own`);
  await file(page, "kept.txt").waitFor();
});

browserTest(
  "[AD21] [AD33] a key that may only read uploads, deletes and edits nothing; others do not see the page",
  async () => {
    const { page } = await signedIn("/admin/files?file=films%2Fnotes.txt&prefix=films%2F", READER);
    await page.getByRole("dialog").getByText("Notes of a film").waitFor();
    for (const name of ["Upload", "New folder", "Delete", "Save", "Add"]) {
      const count = await page.getByRole("button", { name, exact: true, includeHidden: true }).count();
      expect({ name, count }).toEqual({ name, count: 0 });
    }
    expect(await page.getByRole("checkbox", { includeHidden: true }).count()).toBe(0);
    await page.goto(`${platform.url}/admin/files?bucket=own`);
    await page.getByRole("alert").getByText("Access denied").waitFor();
    const elsewhere = await signedIn("/admin/users", `elsewhere-${READER}`);
    await elsewhere.page.getByRole("heading", { level: 1 }).waitFor();
    expect(await elsewhere.page.getByRole("navigation").getByRole("link", { name: "Files" }).count()).toBe(0);
  },
);

browserTest(
  "[AD30] the page Files is accessible and fits",
  () =>
    expectGoodPages(browser, platform, [
      "/admin/files",
      "/admin/files?bucket=empty",
      "/admin/files?bucket=posters&prefix=films%2F42%2F&layout=pictures",
      "/admin/files?bucket=posters&file=readme.txt",
      "/admin/files?bucket=posters&file=films%2F42%2Fposter.gif",
      "/admin/files?bucket=posters&uploads=true",
      "/admin/files?bucket=nothing",
    ]),
  LONG_MS,
);
