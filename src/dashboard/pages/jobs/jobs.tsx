import { Tabs } from "@mantine/core";
import { useResources } from "../../api/resources.ts";
import { useRights } from "../../api/session.tsx";
import { Page, usePageState } from "../../parts/page.tsx";
import { JobsView } from "./job-list.tsx";
import { MailTemplates } from "./mail-templates.tsx";
import { Mails } from "./mails.tsx";
import { Schedules } from "./schedules.tsx";
import { Webhooks } from "./webhooks.tsx";

const VIEWS = ["jobs", "schedules", "webhooks", "mail", "templates"] as const;
type View = (typeof VIEWS)[number];
const NAMES: Readonly<Record<View, string>> = {
  jobs: "Queue",
  schedules: "Schedules",
  webhooks: "Webhooks",
  mail: "Mail outbox",
  templates: "Mail templates",
};

/** Background work: jobs, schedules with their next runs, webhook deliveries, unsent mails, and how mails look. */
export default function JobsPage() {
  const { state, change } = usePageState<{ view: View }>();
  const view = VIEWS.find((one) => one === state.view) ?? "jobs";
  const { may } = useRights();
  const resources = useResources();
  const isShown: Readonly<Record<View, boolean>> = {
    jobs: true,
    schedules: true,
    webhooks: (resources.data?.webhooks.length ?? 0) > 0,
    mail: may("auth", "admin", "*", "read"),
    templates: may("system", "*", "*", "read"),
  };
  return (
    <Page title="Jobs">
      <Tabs
        value={view}
        onChange={(next) => change({ view: VIEWS.find((one) => one === next && one !== "jobs") })}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          {VIEWS.filter((one) => isShown[one]).map((one) => (
            <Tabs.Tab key={one} value={one}>
              {NAMES[one]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="jobs">
          <JobsView />
        </Tabs.Panel>
        <Tabs.Panel value="schedules">
          <Schedules />
        </Tabs.Panel>
        <Tabs.Panel value="webhooks">
          <Webhooks names={resources.data?.webhooks ?? []} />
        </Tabs.Panel>
        <Tabs.Panel value="mail">
          <Mails />
        </Tabs.Panel>
        <Tabs.Panel value="templates">
          <MailTemplates />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
