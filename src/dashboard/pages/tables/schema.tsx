import {
  Anchor,
  Badge,
  Code,
  Group,
  Paper,
  SimpleGrid,
  Stack,
  Table,
  Text,
  Title,
  VisuallyHidden,
} from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { type Field, type TableSchema, useResources } from "../../api/resources.ts";
import { server } from "../../api/server.ts";
import { useRights } from "../../api/session.tsx";
import { bytesText, numberText } from "../../parts/format.tsx";
import { Wide } from "../../parts/list/list.tsx";
import { Failure } from "../../parts/states.tsx";
import { keyOf, pageOf, referredAt, type TableAddress } from "./address.ts";
import { FieldMenu, RuleAction, TableActions } from "./edit/actions.tsx";
import { ACTIONS } from "./edit/rule-form.tsx";
import { type Source, useSource } from "./edit/source.ts";
import { PutBack } from "./edit/undo.tsx";
import { referringFields } from "./record/referrers.tsx";

/** Declaration of a table: fields, indexes, references and rules; and its size. */
export function SchemaTab({ address, schema }: { address: TableAddress; schema: TableSchema }) {
  const source = useSource();
  const isEditable = source !== null && schema.view !== true;
  return (
    <Stack gap="lg" pb="md">
      {source === null ? null : <PutBack source={source} />}
      {isEditable ? <TableActions address={address} schema={schema} source={source} /> : null}
      {schema.view === true ? null : <Sizes address={address} />}
      <Section title="Fields">
        <Fields address={address} schema={schema} source={isEditable ? source : null} />
        {schema.view === true ? (
          <Text size="sm" c="dimmed">
            This is a view: the SQL of the config makes its records of other tables.
          </Text>
        ) : null}
        {schema.schemaless ? (
          <Text size="sm" c="dimmed">
            The table has no schema: records may have any fields besides these.
          </Text>
        ) : null}
      </Section>
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <Section title="Indexes">
          <Indexes schema={schema} />
        </Section>
        <Section title="Referred to by">
          <ReferredBy address={address} />
        </Section>
      </SimpleGrid>
      <Rules address={address} schema={schema} source={isEditable ? source : null} />
    </Stack>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Stack gap="xs" component="section" aria-label={title} miw={0}>
      <Title order={2} size="h5">
        {title}
      </Title>
      {children}
    </Stack>
  );
}

function Sizes({ address }: { address: TableAddress }) {
  const { namespace, instance, table } = address;
  const size = useQuery({
    queryKey: [...keyOf(address), "size"],
    queryFn: () => server.tables.size({ namespace, table, instanceId: instance ?? undefined }),
  });
  if (size.error !== null) return <Failure error={size.error} onRetry={() => void size.refetch()} />;
  const { data } = size;
  const file = instance === null ? namespace : `${namespace} / ${instance}`;
  return (
    <SimpleGrid cols={{ base: 1, xs: 3 }} component="section" aria-label="Size">
      <Figure name="Records" value={data === undefined ? null : numberText(data.rows)} />
      <Figure name="Data, about" value={data === undefined ? null : bytesText(data.bytes)} />
      <Figure name={`File of ${file}`} value={data === undefined ? null : bytesText(data.fileBytes)} />
    </SimpleGrid>
  );
}

function Figure({ name, value }: { name: string; value: string | null }) {
  return (
    <Paper withBorder p="sm">
      <Text size="xs" c="dimmed" truncate title={name}>
        {name}
      </Text>
      <Text size="lg" fw={600} className="number">
        {value ?? "…"}
      </Text>
    </Paper>
  );
}

interface PartProps {
  address: TableAddress;
  schema: TableSchema;
  /** The config where it can be edited. */
  source: Source | null;
}

function Fields({ address, schema, source }: PartProps) {
  return (
    <Wide minWidth={560}>
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Field</Table.Th>
            <Table.Th>Type</Table.Th>
            <Table.Th>Constraints</Table.Th>
            <Table.Th>Refers to</Table.Th>
            {source === null ? null : (
              <Table.Th w={48}>
                <VisuallyHidden>Change</VisuallyHidden>
              </Table.Th>
            )}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {Object.entries(schema.fields).map(([name, field]) => (
            <Table.Tr key={name}>
              <Table.Td style={{ overflowWrap: "anywhere" }}>{name}</Table.Td>
              <Table.Td>{field.type}</Table.Td>
              <Table.Td>
                <Group gap={6}>
                  {constraintsOf(name, field, schema).map((text) => (
                    <Badge key={text} variant="light" color="gray" tt="none" fw={500} maw={260} title={text}>
                      {text}
                    </Badge>
                  ))}
                </Group>
              </Table.Td>
              <Table.Td>
                {field.references === undefined ? null : (
                  <TableLink address={address} {...field.references} on={`on delete: ${field.references.onDelete}`} />
                )}
              </Table.Td>
              {source === null ? null : (
                <Table.Td>
                  {field.generated ? null : <FieldMenu address={address} name={name} field={field} source={source} />}
                </Table.Td>
              )}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Wide>
  );
}

function constraintsOf(name: string, field: Field, { fts }: TableSchema): string[] {
  const isText = field.type === "string" || field.type === "text";
  const of = isText ? " characters" : "";
  return [
    field.required ? "required" : null,
    field.unique ? "unique" : null,
    field.generated ? "set by the server" : null,
    field.fixed === true ? "fixed after the insert" : null,
    field.onUpdate === "now" && !field.generated ? "now at each update" : null,
    field.min === undefined ? null : `at least ${numberText(field.min)}${of}`,
    field.max === undefined ? null : `at most ${numberText(field.max)}${of}`,
    field.enum === undefined ? null : `one of ${field.enum.join(", ")}`,
    field.pattern === undefined ? null : `matches /${field.pattern}/${field.patternFlags ?? ""}`,
    field.validate === "new" ? "values stored before are not compared" : null,
    field.check === undefined ? null : `check ${field.check}`,
    field.default === undefined ? null : `default ${JSON.stringify(field.default)}`,
    fts?.fields.includes(name) === true ? "searched" : null,
  ].filter((text) => text !== null);
}

function TableLink({
  address,
  namespace,
  table,
  column,
  on,
}: {
  address: TableAddress;
  namespace?: string;
  table: string;
  column: string;
  on: string;
}) {
  const { may } = useRights();
  const { data } = useResources();
  const at = referredAt(address, { ...(namespace === undefined ? {} : { namespace }), table });
  // Of which instance is not known here.
  const hasInstances = namespace !== undefined && data?.namespaces[namespace]?.instance === true;
  const name = namespace === undefined ? table : `${namespace}/${table}`;
  const text = column === "id" ? name : `${name}.${column}`;
  return (
    <Stack gap={0}>
      {may("db", at.namespace, table, "read") && !hasInstances ? (
        <Anchor size="sm" component={Link} to={pageOf(at)} search={{ tab: "schema" } as never}>
          {text}
        </Anchor>
      ) : (
        <Text size="sm">{text}</Text>
      )}
      <Text size="xs" c="dimmed">
        {on}
      </Text>
    </Stack>
  );
}

function Indexes({ schema }: { schema: TableSchema }) {
  const { indexes, fts } = schema;
  const own = Object.entries(schema.fields).filter(([, { unique, references }]) => unique || references !== undefined);
  return (
    <Table>
      <Table.Tbody>
        {own.map(([name, { unique }]) => (
          <IndexLine key={name} fields={[name]} kind={unique ? "unique" : "of the reference"} />
        ))}
        {indexes.map(({ fields, unique }) => (
          <IndexLine key={fields.join()} fields={fields} kind={unique ? "unique" : "declared"} />
        ))}
        {fts === null ? null : <IndexLine fields={fts.fields} kind={`full-text search, ${fts.tokenize}`} />}
      </Table.Tbody>
    </Table>
  );
}

const IndexLine = ({ fields, kind }: { fields: readonly string[]; kind: string }) => (
  <Table.Tr>
    <Table.Td style={{ overflowWrap: "anywhere" }}>{fields.join(", ")}</Table.Td>
    <Table.Td c="dimmed">{kind}</Table.Td>
  </Table.Tr>
);

function ReferredBy({ address }: { address: TableAddress }) {
  const found = referringFields(useResources().data?.namespaces ?? {}, address);
  if (found.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        No table refers to this one.
      </Text>
    );
  }
  return (
    <Table>
      <Table.Tbody>
        {found.map(({ namespace, table, column, field }) => (
          <Table.Tr key={`${namespace}.${table}.${column}`}>
            <Table.Td>
              <TableLink
                address={address}
                {...(namespace === address.namespace ? {} : { namespace })}
                table={table}
                column={column}
                on={`on delete: ${field.references?.onDelete}`}
              />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function Rules({ address, schema, source }: PartProps) {
  const { may } = useRights();
  const rules = useResources().data?.rules[address.namespace]?.[address.table] ?? {};
  if (!may("system", "*", "*", "read")) return null;
  return (
    <Section title="Rules">
      <Text size="sm" c="dimmed">
        Service keys pass them. What a rule says about one record is under Rules when the record is open.
      </Text>
      <Stack gap="sm">
        {ACTIONS.map((action) => (
          <Stack key={action} gap={4}>
            <Group gap="xs">
              <Text size="sm" fw={600}>
                {action}
              </Text>
              {source === null ? null : (
                <RuleAction address={address} schema={schema} source={source} action={action} present={rules[action]} />
              )}
            </Group>
            {rules[action] === undefined ? (
              <Text size="sm" c="dimmed">
                No rule: denied
              </Text>
            ) : (
              <Code block style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
                {rules[action]}
              </Code>
            )}
          </Stack>
        ))}
      </Stack>
    </Section>
  );
}
