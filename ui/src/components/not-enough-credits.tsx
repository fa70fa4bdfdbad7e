import { Link } from 'react-router';
import { Notice } from '@/components/notice';
import { paths } from '@/lib/paths';

export default function NotEnoughCredits() {
  return (
    <Notice tone="warning">
      <strong>Not enough credits</strong>
      {' · '}
      <Link to={paths.pricing} className="font-semibold underline underline-offset-4">
        Get more credits
      </Link>
    </Notice>
  );
}
