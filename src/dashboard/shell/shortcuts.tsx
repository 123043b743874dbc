import { Kbd, Modal, Table } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { useState } from "react";

const KEYS: readonly (readonly [string, string])[] = [
  ["/", "Search tables, users, files and pages"],
  ["?", "Show these keys"],
  ["↑ ↓ ← →", "Move in a grid"],
  ["Enter", "Edit a cell, save it"],
  ["Alt Enter", "Open what a cell refers to"],
  ["Escape", "Cancel, close"],
];

/** `?` lists the keys. */
export function Shortcuts() {
  const [isOpen, setIsOpen] = useState(false);
  useHotkeys([
    ["shift+?", () => setIsOpen(true)],
    ["?", () => setIsOpen(true)],
  ]);
  return (
    <Modal opened={isOpen} onClose={() => setIsOpen(false)} title="Keys">
      <Table>
        <Table.Tbody>
          {KEYS.map(([key, what]) => (
            <Table.Tr key={key}>
              <Table.Td w={120}>
                <Kbd>{key}</Kbd>
              </Table.Td>
              <Table.Td>{what}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  );
}
