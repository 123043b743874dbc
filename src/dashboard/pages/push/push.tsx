import { Button, Stack, Tabs } from "@mantine/core";
import { useRights } from "../../api/session.tsx";
import { IconSend } from "../../parts/icons.tsx";
import { Page, usePageState } from "../../parts/page.tsx";
import { OpenDevice } from "./device.tsx";
import { Devices } from "./devices.tsx";
import { Log } from "./log.tsx";
import { Send } from "./send.tsx";
import type { PushState, View } from "./state.tsx";
import { Topics } from "./topics.tsx";

const VIEWS: readonly { view: View; label: string }[] = [
  { view: "devices", label: "Devices" },
  { view: "topics", label: "Topics" },
  { view: "log", label: "Log" },
];

/** Devices and topics for push messages, and the outcome of messages. */
export default function PushPage() {
  const { may } = useRights();
  const { state, change } = usePageState<PushState>();
  const { q = "", device, to } = state;
  const view = VIEWS.find((one) => one.view === state.view)?.view ?? "devices";
  const mayRead = may("push", "*", "*", "read");
  const maySend = may("push", "*", "*", "send");
  return (
    <Page
      title="Push"
      actions={
        maySend ? (
          <Button leftSection={<IconSend size={16} aria-hidden />} onClick={() => change({ to: "" })}>
            Send
          </Button>
        ) : null
      }
    >
      {mayRead ? (
        <Tabs
          value={view}
          onChange={(next) => change({ view: VIEWS.find((one) => one.view === next)?.view })}
          keepMounted={false}
        >
          <Tabs.List mb="md">
            {VIEWS.map((one) => (
              <Tabs.Tab key={one.view} value={one.view}>
                {one.label}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          <Tabs.Panel value={view}>
            <Stack gap="md">
              {view === "devices" ? <Devices state={state} change={change} /> : null}
              {view === "topics" ? <Topics q={q} change={change} /> : null}
              {view === "log" ? <Log state={state} change={change} /> : null}
            </Stack>
          </Tabs.Panel>
        </Tabs>
      ) : null}
      {device === undefined || !mayRead ? null : <OpenDevice token={device} change={change} />}
      {to === undefined || !maySend ? null : <Send to={to} change={change} key={to} />}
    </Page>
  );
}
