import { defineConfig } from "vite";

// The page is served from wherever the application mounts it, so every address in it is relative to <base>.
export default defineConfig({
  base: "./",
  build: {
    outDir: process.env["PAGE"] ?? "../src/treadle/serve/page",
    emptyOutDir: true,
    target: "es2022",
    // The policy of the page allows no inline script and no data: script or style.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: true,
  },
  server: { proxy: { "/api": "http://127.0.0.1:8700" } },
});
