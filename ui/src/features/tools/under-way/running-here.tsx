import { useRunning } from './get-running';
import RunningList from './running-list';

/** What is being made of one image; what it becomes appears in the lists of its page. */
export default function RunningHere({ imageId }: { imageId: string }) {
  const { data } = useRunning();
  return <RunningList jobs={data?.filter((job) => job.imageId === imageId) ?? []} />;
}
