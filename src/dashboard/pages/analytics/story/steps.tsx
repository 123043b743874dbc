import { Badge, Button, Code, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Plan } from "../../../parts/code/plan.tsx";
import { millisText, numberText } from "../../../parts/format.tsx";
import { AddIndex } from "./add-index.tsx";
import type { ProposedIndex, QueryStep, Step } from "./model.ts";
import "./steps.css";

const NAMES: Readonly<Record<Step["kind"], string>> = {
  query: "Query",
  rule: "Rule",
  hook: "Hook",
  write: "Write",
  job: "Job",
};

const SAID: Readonly<Record<string, [text: string, colour: string]>> = {
  allows: ["allows", "green"],
  denies: ["denies", "red"],
  filters: ["shows some", "blue"],
  asks: ["asks for the record", "gray"],
  fails: ["failed", "red"],
  runs: ["ran", "gray"],
};

/** Steps of a request in order, each with its place in the time of the request. */
export function Steps({ steps, ms, further }: { steps: readonly Step[]; ms: number; further: number }) {
  return (
    <>
      <ol className="story-steps">
        {steps.map((step, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the steps of a story never change
          <li key={index}>
            <Group gap="xs" wrap="nowrap" align="flex-start">
              <Badge size="sm" variant="light" color="gray" tt="none" className="story-kind">
                {NAMES[step.kind]}
              </Badge>
              <div className="story-what">
                <What step={step} />
              </div>
              <Text size="xs" className="number story-ms">
                {"ms" in step ? millisText(step.ms) : ""}
              </Text>
            </Group>
            <Bar step={step} ms={ms} />
          </li>
        ))}
      </ol>
      {further === 0 ? null : (
        <Text size="sm" c="dimmed" mt="xs">
          {numberText(further)} further steps are not listed.
        </Text>
      )}
    </>
  );
}

/** Place of a step in the time of the request; its numbers are in words beside it. */
function Bar({ step, ms }: { step: Step; ms: number }) {
  const percent = (part: number): string => `${Math.min(100, (100 * part) / Math.max(ms, 0.001))}%`;
  return (
    <div className="story-bar" aria-hidden>
      <span
        style={{
          insetInlineStart: percent(Math.min(step.at, ms * 0.995)),
          width: `max(3px, ${percent("ms" in step ? step.ms : 0)})`,
        }}
      />
    </div>
  );
}

function What({ step }: { step: Step }) {
  switch (step.kind) {
    case "query":
      return <Query step={step} />;
    case "rule":
    case "hook": {
      const [text, colour] = SAID[step.said] ?? [step.said, "gray"];
      return (
        <Group gap={6}>
          <Text size="sm" ff="monospace" className="wrapped">
            {step.name}
          </Text>
          <Badge size="sm" variant="light" color={colour} tt="none">
            {text}
          </Badge>
          {step.times === 1 ? null : (
            <Text size="xs" c="dimmed">
              {numberText(step.times)} times
            </Text>
          )}
        </Group>
      );
    }
    case "write":
      return (
        <Text size="sm" className="wrapped">
          {step.changes.map(({ table, id, action }) => `${action} ${table} ${id}`).join(", ")}
          {step.count > step.changes.length ? ` and ${numberText(step.count - step.changes.length)} more` : ""}{" "}
          <Text span size="xs" c="dimmed">
            in {step.place}
          </Text>
        </Text>
      );
    case "job":
      return (
        <Text size="sm" className="wrapped">
          {step.name}{" "}
          <Text span size="xs" c="dimmed">
            {step.id}
          </Text>
        </Text>
      );
  }
}

const SQL_CHARACTERS = 160;

function Query({ step: { sql, plan, place, index, isElsewhere } }: { step: QueryStep }) {
  const [isOpen, setIsOpen] = useState(false);
  const text = isOpen || sql.length <= SQL_CHARACTERS ? sql : `${sql.slice(0, SQL_CHARACTERS)}…`;
  return (
    <Stack gap={4} align="flex-start">
      <Code className="wrapped">{text}</Code>
      <Group gap="xs">
        <Text size="xs" c="dimmed">
          {place}
          {isElsewhere ? ", in another process" : ""}
        </Text>
        {plan === null && sql.length <= SQL_CHARACTERS ? null : (
          <Button size="compact-xs" variant="subtle" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            Plan
          </Button>
        )}
      </Group>
      {isOpen && plan !== null ? <Plan rows={plan} /> : null}
      {index === null ? null : <Proposal index={index} />}
    </Stack>
  );
}

/** Index that would help, with the button that adds it. */
export function Proposal({ index }: { index: ProposedIndex }) {
  return (
    <Group gap="xs">
      <Text size="sm">
        An index on <b>{index.fields.join(", ")}</b> of {index.namespace}.{index.table} would help.
      </Text>
      <AddIndex index={index} />
    </Group>
  );
}
