import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { start } from './app/start';
import './index.css';

const container = document.getElementById('root');
if (!container) throw new Error('index.html has no #root');

// Until the app renders, the page shows the start page of index.html.
const root = createRoot(container);

// `--mode mock` answers every call in the browser. The condition is constant, so a build drops the branch.
if (import.meta.env.MODE === 'mock') {
  const { startMock } = await import('./testing/browser');
  await startMock();
}

const app = await start();
root.render(<StrictMode>{app}</StrictMode>);
