import { Anchor, Code, Drawer, Tabs } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type TableSchema, useResources } from "../../../api/resources.ts";
import { useRights } from "../../../api/session.tsx";
import { usePageState } from "../../../parts/page.tsx";
import { Loadable } from "../../../parts/states.tsx";
import { useServer, useViewAs } from "../../../shell/view-as.tsx";
import { keyOf, pathOf, type TableAddress } from "../address.ts";
import type { Row } from "../rows.ts";
import { DocumentForm } from "./document-form.tsx";
import { RecordForm } from "./form.tsx";
import { Referrers, referringFields } from "./referrers.tsx";
import { RuleTester } from "./rules.tsx";
import { NEW_RECORD, type RecordActions, type RecordState } from "./state.tsx";

interface DrawerProps extends RecordActions {
  address: TableAddress;
  schema: TableSchema;
  id: string;
  isReadOnly: boolean;
}

/** One record with its fields, JSON and rules; or a new one. */
export function RecordDrawer(props: DrawerProps) {
  const { address, id, onClose } = props;
  const { isRoot } = useRights();
  const { state, change } = usePageState<RecordState>();
  const isNew = id === NEW_RECORD;
  const source = useRecord(address, isNew ? state.from : id);
  const Form = props.schema.schemaless ? DocumentForm : RecordForm;
  const title = isNew ? `New record in ${address.table}` : id;
  const hasRules = isRoot && props.schema.view !== true;
  const resources = useResources();
  const as = useViewAs();
  // A key counts them: not what a user may read.
  const isReferred = as === null && referringFields(resources.data?.namespaces ?? {}, address).length > 0;
  const shown = { json: true, rules: hasRules, referrers: isReferred };
  const panel = state.panel !== undefined && shown[state.panel] ? state.panel : undefined;
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size="lg"
      title={title}
      closeButtonProps={{ "aria-label": "Close" }}
      styles={{ title: { overflowWrap: "anywhere" } }}
    >
      {isNew && state.from === undefined ? <Form {...props} stored={null} /> : null}
      {isNew && state.from !== undefined ? (
        <Loadable query={source}>{(copied) => <Form {...props} stored={null} copied={copied} />}</Loadable>
      ) : null}
      {isNew ? null : (
        <Tabs
          value={panel ?? "fields"}
          keepMounted={false}
          onChange={(next) =>
            // The values are those of the tabs below.
            change({ panel: next === "fields" ? undefined : (next as RecordState["panel"]) }, { replace: true })
          }
        >
          <Tabs.List mb="md">
            <Tabs.Tab value="fields">Fields</Tabs.Tab>
            <Tabs.Tab value="json">JSON</Tabs.Tab>
            {isReferred ? <Tabs.Tab value="referrers">Referred by</Tabs.Tab> : null}
            {hasRules ? <Tabs.Tab value="rules">Rules</Tabs.Tab> : null}
            {props.schema.users ? (
              <Anchor size="sm" component={Link} to={`/users/${encodeURIComponent(id)}`} ml="auto" my="auto">
                Account
              </Anchor>
            ) : null}
          </Tabs.List>
          <Tabs.Panel value="fields">
            <Loadable query={source}>{(stored) => <Form {...props} stored={stored} />}</Loadable>
          </Tabs.Panel>
          <Tabs.Panel value="json">
            <Loadable query={source}>{(stored) => <Code block>{JSON.stringify(stored, null, 2)}</Code>}</Loadable>
          </Tabs.Panel>
          <Tabs.Panel value="referrers">
            <Referrers address={address} id={id} />
          </Tabs.Panel>
          <Tabs.Panel value="rules">
            <RuleTester address={address} id={id} />
          </Tabs.Panel>
        </Tabs>
      )}
    </Drawer>
  );
}

function useRecord(address: TableAddress, id: string | undefined) {
  const server = useServer();
  const as = useViewAs();
  return useQuery({
    queryKey: [...keyOf(address), "record", as, id],
    enabled: id !== undefined,
    // Loaded data may have been saved since.
    staleTime: 0,
    queryFn: () => server.request<Row>("GET", `${pathOf(address)}/${encodeURIComponent(id ?? "")}`),
  });
}
