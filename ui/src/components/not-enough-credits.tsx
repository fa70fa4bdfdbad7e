import { Link } from 'react-router';
import { Notice } from '@/components/notice';
import { paths } from '@/lib/paths';
import { t } from '@/lib/translate';

export default function NotEnoughCredits() {
  return (
    <Notice tone="warning">
      <strong>{t('Not enough credits')}</strong>
      {' · '}
      <Link to={paths.pricing} className="font-semibold underline underline-offset-4">
        {t('Get more credits')}
      </Link>
    </Notice>
  );
}
