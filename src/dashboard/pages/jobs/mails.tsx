import { Anchor, Modal, Stack, Tabs, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { server } from "../../api/server.ts";
import { Ago } from "../../parts/format.tsx";
import { DataTable } from "../../parts/list/data-table.tsx";
import { Paged, usePaged } from "../../parts/list/list.tsx";
import { usePageState } from "../../parts/page.tsx";
import { Empty, Loadable } from "../../parts/states.tsx";

const PAGE = 50;
const PREVIEW_HEIGHT_PX = 420;

/** Mails kept by a server without a mail server, or by a drill. */
export function Mails() {
  const { state, change } = usePageState<{ mail: string }>();
  const list = usePaged({
    queryKey: ["outbox"],
    load: (cursor) => server.users.outbox({ limit: PAGE, cursor }),
  });
  return (
    <>
      <Paged
        list={list}
        empty={
          <Empty title="The outbox is empty">
            Mails wait here where no <code>auth.mail.smtp</code> is configured, and in a drill. Sent mails are jobs with
            the name <code>platform.mail</code>.
          </Empty>
        }
      >
        {(mails) => (
          <DataTable
            label="Mails"
            minWidth={560}
            items={mails}
            keyOf={({ id }) => id}
            columns={[
              {
                title: "Subject",
                maxWidth: 300,
                show: ({ id, subject }) => (
                  <Anchor component="button" size="sm" maw="100%" truncate onClick={() => change({ mail: id })}>
                    {subject}
                  </Anchor>
                ),
              },
              {
                title: "To",
                maxWidth: 240,
                show: ({ to }) => (
                  <Text size="sm" truncate>
                    {to}
                  </Text>
                ),
              },
              { title: "Kind", show: ({ kind }) => kind },
              { title: "When", show: ({ sentAt }) => <Ago time={sentAt} /> },
            ]}
          />
        )}
      </Paged>
      {state.mail === undefined ? null : <Preview id={state.mail} onClose={() => change({ mail: undefined })} />}
    </>
  );
}

/** Mail as its reader sees it. The HTML runs no scripts, and loads nothing from elsewhere. */
function Preview({ id, onClose }: { id: string; onClose(): void }) {
  const mail = useQuery({ queryKey: ["outbox", id], queryFn: () => server.users.outboxMail(id) });
  return (
    <Modal opened onClose={onClose} size="lg" title={mail.data?.subject ?? "Mail"}>
      <Loadable query={mail}>
        {({ from, to, text, html }) => (
          <Stack gap="xs">
            <Text size="sm" c="dimmed">
              From {from} to {to}. Its link and code are hidden.
            </Text>
            <Tabs defaultValue={html === null ? "text" : "html"} keepMounted={false}>
              <Tabs.List mb="xs">
                {html === null ? null : <Tabs.Tab value="html">HTML</Tabs.Tab>}
                <Tabs.Tab value="text">Text</Tabs.Tab>
              </Tabs.List>
              {html === null ? null : (
                <Tabs.Panel value="html">
                  <iframe
                    className="mail-preview"
                    title="The mail as HTML"
                    sandbox=""
                    srcDoc={html}
                    height={PREVIEW_HEIGHT_PX}
                  />
                </Tabs.Panel>
              )}
              <Tabs.Panel value="text">
                <Text size="sm" className="wrapped">
                  {text}
                </Text>
              </Tabs.Panel>
            </Tabs>
          </Stack>
        )}
      </Loadable>
    </Modal>
  );
}
