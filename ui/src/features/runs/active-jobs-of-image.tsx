import ActiveJobsList from './active-jobs-list';
import { useActiveJobs } from './get-active-jobs';

export default function ActiveJobsOfImage({ imageId }: { imageId: string }) {
  const { data } = useActiveJobs();
  return <ActiveJobsList jobs={data?.filter((job) => job.imageId === imageId) ?? []} />;
}
