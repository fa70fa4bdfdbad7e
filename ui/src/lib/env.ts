import { createContext, useContext } from 'react';
import { api, unwrap } from './api-client';
import type { Config, ToolName, ToolOffer } from './api-types';

// Every installation has the same build. Its settings come from the API before the first render.
export async function loadConfig(): Promise<Config> {
  return unwrap(await api.GET('/api/config'));
}

export const ConfigContext = createContext<Config | null>(null);

export function useConfig(): Config {
  const config = useContext(ConfigContext);
  if (!config) throw new Error('No ConfigContext');
  return config;
}

export function useTool(name: ToolName): ToolOffer | undefined {
  return useConfig().tools.find((tool) => tool.tool === name);
}

/** Whether this installation offers the tool, for paid or free runs. */
export function isInstalled(config: Config, name: ToolName): boolean {
  return config.tools.some(
    ({ tool, available, freeAvailable }) => tool === name && (available || freeAvailable),
  );
}
