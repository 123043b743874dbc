import type { Page } from "playwright-core";

/** Returns the editor of the dashboard's SQL page. */
export const editorOf = (page: Page) => page.getByRole("textbox", { name: "Statements" });

/** Replaces the text of the editor. Escape closes what it proposes. */
export async function writeStatements(page: Page, text: string): Promise<void> {
  await editorOf(page).click();
  await page.keyboard.press("Control+A");
  await page.keyboard.insertText(text);
  await page.keyboard.press("Escape");
}

export const runStatements = (page: Page) => page.getByRole("button", { name: "Run" }).click();
