import {
  Alert,
  Button,
  Code,
  Drawer,
  Group,
  JsonInput,
  NumberInput,
  Select,
  Stack,
  Table,
  Text,
  TextInput,
  UnstyledButton,
} from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useInfiniteQuery, useMutation, useQuery } from "@tanstack/react-query";
import { type SyntheticEvent, useState } from "react";
import { useResources } from "../../api/resources.ts";
import { messageOf, queries, server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { IconPlus, IconSearch } from "../../parts/icons.tsx";
import { parseJson, textHeight } from "../../parts/json.tsx";
import { Page, usePageState } from "../../parts/page.tsx";
import { Empty, Failure, Loadable, Loading, Problem } from "../../parts/states.tsx";

interface KeyPage {
  keys: string[];
  cursor: string | null;
}

interface KeyState {
  namespace: string;
  prefix: string;
  /** Open key; empty: a new one. */
  key: string;
}

const PAGE = 100;

const act = <T,>(namespace: string, body: object): Promise<T> =>
  server.request<T>("POST", `/api/kv/${encodeURIComponent(namespace)}`, { body });

/** Keys of a namespace by prefix, and their values. */
export default function KeyValuePage() {
  const resources = useResources();
  return (
    <Loadable query={resources}>
      {({ kv }) =>
        kv.length === 0 ? (
          <Page title="Key-value">
            <Empty title="No namespaces are declared">
              Declare some under <code>kv</code> in platform.config.ts.
            </Empty>
          </Page>
        ) : (
          <Namespaces names={kv} />
        )
      }
    </Loadable>
  );
}

function Namespaces({ names }: { names: readonly string[] }) {
  const { may } = useRights();
  const { state, change } = usePageState<KeyState>();
  const { namespace = names[0] ?? "", prefix = "", key } = state;
  const isWritable = may("kv", "namespace", namespace, "write");
  return (
    <Page
      title="Key-value"
      actions={
        isWritable ? (
          <Button leftSection={<IconPlus size={16} aria-hidden />} onClick={() => change({ key: "" })}>
            Insert
          </Button>
        ) : null
      }
    >
      <Group gap="xs">
        <Select
          aria-label="Namespace"
          data={[...names]}
          value={namespace}
          allowDeselect={false}
          onChange={(next) => change({ namespace: next ?? namespace, key: undefined })}
        />
        <TextInput
          aria-label="Search"
          placeholder="Beginning of the key"
          leftSection={<IconSearch size={16} aria-hidden />}
          w={260}
          defaultValue={prefix}
          onChange={(event) => change({ prefix: event.currentTarget.value || undefined }, { replace: true })}
        />
      </Group>
      <Keys namespace={namespace} prefix={prefix} open={(next) => change({ key: next })} />
      {key === undefined ? null : (
        <Drawer
          opened
          onClose={() => change({ key: undefined })}
          position="right"
          size="lg"
          title={key === "" ? `New key in ${namespace}` : key}
          styles={{ title: { overflowWrap: "anywhere" } }}
        >
          <Entry namespace={namespace} name={key} isReadOnly={!isWritable} onClose={() => change({ key: undefined })} />
        </Drawer>
      )}
    </Page>
  );
}

function Keys({ namespace, prefix, open }: { namespace: string; prefix: string; open(key: string): void }) {
  const pages = useInfiniteQuery({
    queryKey: ["kv", namespace, "keys", prefix],
    initialPageParam: null as string | null,
    getNextPageParam: ({ cursor }: KeyPage) => cursor,
    queryFn: ({ pageParam }) => act<KeyPage>(namespace, { action: "list", prefix, limit: PAGE, cursor: pageParam }),
  });
  const keys = pages.data?.pages.flatMap((page) => page.keys) ?? [];
  if (pages.error !== null) return <Failure error={pages.error} onRetry={() => void pages.refetch()} />;
  if (pages.isPending) return <Loading />;
  if (keys.length === 0) {
    return (
      <Empty title={prefix === "" ? "No keys yet" : "No key begins so"}>
        Code of yours writes keys, or insert one here.
      </Empty>
    );
  }
  return (
    <>
      <Table highlightOnHover layout="fixed" aria-label="Keys">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Key</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {keys.map((key) => (
            <Table.Tr key={key}>
              <Table.Td>
                <UnstyledButton onClick={() => open(key)} display="block" maw="100%" title={key}>
                  <Text size="sm" ff="monospace" truncate>
                    {key}
                  </Text>
                </UnstyledButton>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {pages.hasNextPage ? (
        <Button variant="default" onClick={() => void pages.fetchNextPage()} loading={pages.isFetchingNextPage}>
          More
        </Button>
      ) : null}
    </>
  );
}

interface EntryProps {
  namespace: string;
  /** Name of the key; empty: a new key. */
  name: string;
  isReadOnly: boolean;
  onClose(): void;
}

/** Loads a value as text; null: there is none. */
async function load(namespace: string, key: string): Promise<string | null> {
  const { value } = await act<{ value: unknown }>(namespace, { action: "get", key });
  return value === null ? null : JSON.stringify(value, null, 2);
}

function Entry(props: EntryProps) {
  const { namespace, name } = props;
  const entry = useQuery({
    queryKey: ["kv", namespace, "value", name],
    enabled: name !== "",
    // Each opening reloads the value, and nothing replaces it during editing.
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: () => load(namespace, name),
  });
  if (name === "") return <EntryForm {...props} loaded={null} />;
  return <Loadable query={entry}>{(loaded) => <EntryForm key={name} {...props} loaded={loaded} />}</Loadable>;
}

function EntryForm({ namespace, name, isReadOnly, onClose, ...stored }: EntryProps & { loaded: string | null }) {
  // The query may be refetched, for example after the server was down. The form keeps its initial value.
  const [loaded] = useState(stored.loaded);
  const [key, setKey] = useState(name);
  const [value, setValue] = useState(loaded ?? (name === "" ? "" : "null"));
  const [ttl, setTtl] = useState<number | string>("");
  const [problem, setProblem] = useState<string | null>(null);
  /** Value that others have set, replaced only after a confirmation; null: none. */
  const [found, setFound] = useState<string | null>(null);
  const loadAgain = (): void => void queries.invalidateQueries({ queryKey: ["kv", namespace] });
  const save = useMutation({
    async mutationFn(parsed: unknown) {
      const present = await load(namespace, key);
      // Replacing a deleted value loses nothing.
      if (present !== null && present !== loaded && present !== found) return present;
      await act(namespace, { action: "set", key, value: parsed, ttl: typeof ttl === "number" ? ttl : null });
      return null;
    },
    onSuccess: (present) => (present === null ? loadAgain() : setFound(present)),
  });
  const remove = useMutation({
    mutationFn: () => act(namespace, { action: "delete", key: name }),
    onSuccess: loadAgain,
    onError: (error) => notifications.show({ color: "red", title: "Not deleted", message: messageOf(error) }),
  });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    try {
      // A response that arrives after this form was closed must not close another one.
      save.mutate(parseJson(value), { onSuccess: (present) => (present === null ? onClose() : undefined) });
      setProblem(null);
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        {name === "" ? (
          <TextInput
            label="Key"
            required
            value={key}
            onChange={(event) => {
              setKey(event.currentTarget.value);
              setFound(null);
            }}
          />
        ) : null}
        <JsonInput
          validationError="This is no JSON"
          label="Value"
          {...textHeight(value, 6, 24)}
          value={value}
          readOnly={isReadOnly}
          error={problem}
          onChange={setValue}
        />
        {isReadOnly ? null : (
          <NumberInput
            label="Expires after"
            description="Seconds from now; empty: never, also where it had an expiry"
            min={1}
            value={ttl}
            onChange={setTtl}
          />
        )}
        <Problem of={save.error} />
        {found === null ? null : (
          <Alert
            color="orange"
            role="alert"
            title={name === "" ? "The key has this value already" : "The value has changed meanwhile"}
          >
            <Code block mah={200}>
              {found}
            </Code>
          </Alert>
        )}
        {isReadOnly ? null : (
          <Group justify="space-between">
            <Group gap="xs">
              <Button type="submit" loading={save.isPending}>
                {found === null ? "Save" : "Replace"}
              </Button>
              <Button variant="default" onClick={onClose}>
                Cancel
              </Button>
            </Group>
            {name === "" ? null : (
              <Confirm
                action="Delete"
                question={`Delete the key ${name}?`}
                onConfirm={() => remove.mutate(undefined, { onSuccess: onClose })}
              />
            )}
          </Group>
        )}
      </Stack>
    </form>
  );
}
