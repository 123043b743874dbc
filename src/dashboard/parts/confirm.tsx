import { Button, Group, Modal, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";

/** Button for an irreversible action, which asks for confirmation. */
export function Confirm({
  action,
  question,
  size = "sm",
  onConfirm,
}: {
  action: string;
  question: string;
  size?: "sm" | "compact-sm";
  onConfirm(): void;
}) {
  const [isOpen, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button color="red" variant="light" size={size} onClick={open}>
        {action}
      </Button>
      <Modal opened={isOpen} onClose={close} title={action}>
        <Text size="sm" mb="md">
          {question}
        </Text>
        <Group gap="xs">
          <Button
            color="red"
            onClick={() => {
              close();
              onConfirm();
            }}
          >
            {action}
          </Button>
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
        </Group>
      </Modal>
    </>
  );
}
