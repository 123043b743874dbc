import { Page } from "../parts/page.tsx";
import { Empty } from "../parts/states.tsx";

/** At an address that no page has. */
export function NotFound() {
  return (
    <Page title="Not found">
      <Empty title="There is no page at this address">Choose one of the pages, or press / to search.</Empty>
    </Page>
  );
}
