import { Table } from "@mantine/core";

/** A number in a table. */
export const Amount = ({ text }: { text: string }) => (
  <Table.Td ta="right" className="number">
    {text}
  </Table.Td>
);
