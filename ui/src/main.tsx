import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { start } from './app/start';
import './index.css';

const container = document.getElementById('root');
if (!container) throw new Error('index.html has no #root');

// Until the app is there, the page shows the frame that index.html brings along.
const root = createRoot(container);

// `--mode mock` answers every call in the browser; the condition is a constant, so a build drops it.
if (import.meta.env.MODE === 'mock') {
  const { startMock } = await import('./testing/browser');
  await startMock();
}

const app = await start();
root.render(<StrictMode>{app}</StrictMode>);
