import { createTheme, type MantineColorsTuple } from "@mantine/core";

const ink: MantineColorsTuple = [
  "#eef3ff",
  "#dce4f9",
  "#b8c7f0",
  "#90a8e7",
  "#6f8de0",
  "#5a7cdc",
  "#4a6bd0",
  "#3f5cb8",
  "#3652a6",
  "#2a4694",
];

export const theme = createTheme({
  primaryColor: "ink",
  primaryShade: 7,
  colors: { ink },
  fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
  defaultRadius: "sm",
  cursorType: "pointer",
  autoContrast: true,
  components: {
    // Names the close button.
    Modal: { defaultProps: { closeButtonProps: { "aria-label": "Close" } } },
    Drawer: { defaultProps: { closeButtonProps: { "aria-label": "Close" } } },
  },
});
