import { Anchor, Tabs } from "@mantine/core";
import { lazy, Suspense } from "react";
import { useRights } from "../../api/session.tsx";
import { Page, usePageState } from "../../parts/page.tsx";
import { Loading } from "../../parts/states.tsx";
import { Backups } from "./backups.tsx";
import { Config } from "./config.tsx";

const Schema = lazy(() => import("./schema.tsx"));

const VIEWS = ["config", "schema", "backups"] as const;
type View = (typeof VIEWS)[number];
const NAMES: Readonly<Record<View, string>> = { config: "Config", schema: "Schema", backups: "Backups" };

/** Config, schema diagram and backups of the server. */
export default function SettingsPage() {
  const { may } = useRights();
  const { state, change } = usePageState<{ view: View }>();
  const isShown: Readonly<Record<View, boolean>> = {
    config: may("system", "*", "*", "read"),
    schema: true,
    backups: may("backups", "*", "*", "read"),
  };
  const shown = VIEWS.filter((view) => isShown[view]);
  return (
    <Page
      title="Settings"
      hint={
        <>
          What platform.config.ts declares. It is changed there, and counts from the next start.{" "}
          <Anchor href="/swagger" underline="always" size="sm">
            The API
          </Anchor>{" "}
          has every endpoint of this server.
        </>
      }
    >
      <Tabs
        value={shown.find((view) => view === state.view) ?? shown[0] ?? "schema"}
        onChange={(next) => change({ view: VIEWS.find((one) => one === next && one !== shown[0]) })}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          {shown.map((view) => (
            <Tabs.Tab key={view} value={view}>
              {NAMES[view]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="config">
          <Config />
        </Tabs.Panel>
        <Tabs.Panel value="schema">
          <Suspense fallback={<Loading />}>
            <Schema />
          </Suspense>
        </Tabs.Panel>
        <Tabs.Panel value="backups">
          <Backups />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
